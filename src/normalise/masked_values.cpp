// SPDX-License-Identifier: Apache-2.0
// x[mask] has as many rows as the mask has true elements, which only the values say. What a program does with such rows
// is mostly done row by row and put back, or summed: then all rows may be computed, and the mask chooses.
//
//   x[mask] *= 0.1               becomes  x = where(mask, x * 0.1, x)
//   y[mask] = layer(x[mask])              y = where(mask, layer(x), y)
//   x[mask].mean()                        where(mask, x, 0).sum() / mask.sum()
//   x[mask].shape[0]                      mask.sum().item()
//
// and the same of the places that torch.where(mask) gives, which then are those of all rows:
//
//   y.index_add_(0, i, layer(x[i]))       y + where(mask, layer(x), 0)
#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "normalise/masks.h"
#include "normalise/normalise.h"
#include "normalise/row_wise.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// Rows of the mask whose symbol it is.
struct MaskedRows {
  std::string symbol;
  Rows rows;
};

// One coordinate of each position of a mask; -1: all of them, as nonzero has them.
struct Coordinate {
  std::string symbol;
  int dim = -1;
};
// x[:, i, j] for coordinates i and j of a mask: which ones, and before which dims of x they stand.
struct Lookup {
  std::string symbol;
  int dim = 0;
  std::vector<int> coordinates;
};

// The graph with all rows of these masks; what cannot be followed is `failed`.
class Wholes {
 public:
  Wholes(Graph& graph, const Masks& masks, const std::vector<ValueId>& equals)
      : graph_(graph),
        masks_(masks),
        equals_(equals),
        out_(graph),
        c_(graph, [&graph](Operator) { return fmt::format("masked.{}", graph.values.size()); }),
        rows_(graph.values.size()) {
    c_.fold(false);
  }

  std::set<std::string> failed;

  bool run() {
    for (Node& node : out_.nodes()) {
      add(std::move(node));
      if (!failed.empty()) return false;
    }
    for (ValueId v : graph_.outputs) fail_if_rows(v);
    for (const State& state : graph_.states) fail_if_rows(state.output);
    return failed.empty();
  }

 private:
  const MaskedRows* rows(ValueId v) const {
    return v < rows_.size() && v != no_value && rows_[v] ? &*rows_[v] : nullptr;
  }
  void fail_if_rows(ValueId v) {
    if (const MaskedRows* r = rows(v)) failed.insert(r->symbol);
  }
  void fail(const Node& node) {
    for (ValueId v : node.inputs) fail_if_rows(v);
    for (ValueId v : node.outputs)
      if (v != no_value) fail_if_sized(graph_[v].type.shape);
  }
  void fail_if_sized(const Shape& shape) {
    for (const Dim& dim : shape.dims())
      for (const Symbol& s : dim.symbols())
        if (masks_.contains(s.name)) failed.insert(s.name);
  }
  bool is_sized(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      if (v == no_value) return false;
      const auto dims = graph_[v].type.shape.dims();
      return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) { return names_mask(dim); });
    });
  }
  bool names_mask(const Dim& dim) const {
    const auto symbols = dim.symbols();
    return std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return masks_.contains(s.name); });
  }

  void add(Node node) {
    c_.set_loc(node.loc);
    if (const auto chosen = chosen_rows(graph_, node); chosen && node.outputs.size() == 1 && choose(node, *chosen))
      return;
    if (places(node) || coordinate(node)) return;
    const bool takes = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return rows(v); });
    if (!takes) {
      if (is_sized(node)) return fail(node);
      return out_.keep(std::move(node));
    }
    if (node.outputs.empty()) return;  // an assertion
    if (count_rows(node) || look_up(node) || put_back(node) || add_at(node) || each_row(node) || reduce(node)) return;
    fail(node);
  }

  // The rows' size in place of the symbol.
  Dim whole(const Dim& dim) const {
    return dim.with([&](const Symbol& s) {
      const auto mask = masks_.find(s.name);
      return mask == masks_.end() ? Dim(s) : Dim(mask->second.count);
    });
  }
  Shape whole(const Shape& shape) const {
    std::vector<Dim> dims;
    for (const Dim& dim : shape.dims()) dims.push_back(whole(dim));
    return Shape(std::move(dims));
  }

  // x[mask] is x, the mask's dims as one.
  bool choose(const Node& node, const Choice& chosen) {
    const ValueId result = node.outputs[0];
    const Shape said = graph_[result].type.shape;
    const auto symbol = chosen.dim < said.rank() ? only_symbol(said[chosen.dim]) : std::nullopt;
    if (!symbol || !masks_.contains(symbol->name) || rows(node.inputs[0])) return false;
    graph_[result].type.shape = whole(said);
    out_.add(aten::op::view, {node.inputs[0]}, {{"size", graph_[result].type.shape.sizes()}}, result, node.loc);
    rows_[result] = MaskedRows{symbol->name, {chosen.dim, 1}};
    return true;
  }

  // torch.where(mask), nonzero: of all rows they are constants.
  bool places(const Node& node) {
    if (!gives_indices(graph_, node)) return false;
    const Shape first = graph_[node.outputs[0]].type.shape;
    const auto symbol = only_symbol(first[0]);
    if (!symbol || !masks_.contains(symbol->name)) return false;
    const bool matrix = first.rank() == 2;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      if (!is_coordinate(node.outputs[k], {symbol->name, matrix ? -1 : static_cast<int>(k)})) return false;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      set_coordinate(node.outputs[k], {symbol->name, matrix ? -1 : static_cast<int>(k)});
    return true;
  }

  // A column of nonzero's matrix.
  bool coordinate(const Node& node) {
    const auto matrix = node.inputs.empty() ? coordinates_.end() : coordinates_.find(node.inputs[0]);
    if (matrix == coordinates_.end() || matrix->second.dim >= 0) return false;
    const Coordinate all = matrix->second;
    const auto dim = node.attrs.get_or("dim", std::int64_t{0});
    const bool column = dim == 1 || dim == -1;
    const bool alone =
        mask_shape(all.symbol).rank() == 1;  // the matrix has one column, whatever call makes it a vector
    int first = -1;
    if (column && node.op == aten::op::unbind_int) first = 0;
    if (column && node.op == aten::op::select_int && node.outputs.size() == 1)
      first = static_cast<int>(node.attrs.get_or("index", std::int64_t{-1}));
    if (const FoundOp op = find_aten(node.op); alone && node.outputs.size() == 1 && op.op && op.schema->view) first = 0;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      if (first < 0 || !is_coordinate(node.outputs[k], {all.symbol, first + static_cast<int>(k)})) return false;
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      set_coordinate(node.outputs[k], {all.symbol, first + static_cast<int>(k)});
    return true;
  }

  // Has the value the type of that?
  bool is_coordinate(ValueId v, const Coordinate& c) const {
    if (v == no_value || graph_[v].type.dtype != DType::i64) return false;
    const Shape made = whole(graph_[v].type.shape), mask = mask_shape(c.symbol);
    return c.dim < 0 ? made == Shape{mask.elements(), mask.rank()}
                     : made == Shape{mask.elements()} && c.dim < mask.rank();
  }
  void set_coordinate(ValueId v, const Coordinate& c) {
    const Shape mask = mask_shape(c.symbol);
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < mask.elements(); ++i)
      for (int d = 0; d < mask.rank(); ++d) {
        std::int64_t inner = 1;
        for (int e = d + 1; e < mask.rank(); ++e) inner *= mask.size(e);
        if (c.dim < 0 || c.dim == d) numbers.push_back(i / inner % mask.size(d));
      }
    Value& value = graph_[v];
    value.type.shape = whole(value.type.shape);
    value.constant = constant_bytes(value.type.dtype, numbers);
    rows_[v] = MaskedRows{c.symbol, {}};
    coordinates_[v] = c;
  }

  std::optional<Lookup> lookup(std::span<const ValueId> indices) const {
    Lookup found;
    for (ValueId v : indices) {
      if (v == no_value && found.coordinates.empty()) {
        ++found.dim;
        continue;
      }
      const auto c = v == no_value ? coordinates_.end() : coordinates_.find(v);
      if (c == coordinates_.end() || c->second.dim < 0 || (!found.symbol.empty() && c->second.symbol != found.symbol))
        return std::nullopt;
      found.symbol = c->second.symbol;
      found.coordinates.push_back(c->second.dim);
    }
    return found.coordinates.empty() ? std::nullopt : std::optional(found);
  }
  // All coordinates of the mask, in order, on dims of its sizes: the same as the mask itself.
  bool is_mask(const Lookup& l, const Shape& x) const {
    const Shape mask = mask_shape(l.symbol);
    bool is = static_cast<int>(l.coordinates.size()) == mask.rank() && l.dim + mask.rank() <= x.rank();
    for (int d = 0; is && d < mask.rank(); ++d)
      is = l.coordinates[static_cast<std::size_t>(d)] == d && x[l.dim + d] == mask[d];
    return is;
  }

  // x[i], x[i, j], x.index_select(0, i) at all positions.
  bool look_up(Node& node) {
    const bool select = node.op == aten::op::index_select;
    if ((!select && node.op != aten::op::index_Tensor) || node.inputs.size() < 2 || node.outputs.size() != 1)
      return false;
    auto found = lookup(std::span(node.inputs).subspan(1));
    const Shape x = graph_[node.inputs[0]].type.shape;
    if (!found || rows(node.inputs[0])) return false;
    if (select) found->dim = static_cast<int>(node.attrs.get_or("dim", std::int64_t{0}));
    if (found->dim < 0) found->dim += x.rank();
    if (found->dim < 0) return false;
    const Shape mask = mask_shape(found->symbol);
    for (std::size_t k = 0; k < found->coordinates.size(); ++k)
      if (const int d = found->dim + static_cast<int>(k); d >= x.rank() || mask.size(found->coordinates[k]) > x.size(d))
        return false;
    if (is_mask(*found, x) && choose(node, {no_value, found->dim})) return true;
    const ValueId result = node.outputs[0];
    graph_[result].type.shape = whole(graph_[result].type.shape);
    rows_[result] = MaskedRows{found->symbol, {found->dim, 1}};
    out_.keep(std::move(node));
    return true;
  }

  // y.index_add(dim, i, rows): what is not chosen adds nothing, and rows of one index are added up first.
  bool add_at(const Node& node) {
    if (node.op != aten::op::index_add || node.inputs.size() != 3 || node.outputs.size() != 1) return false;
    const ValueId y = node.inputs[0], source = node.inputs[2];
    const auto found = lookup(std::span(node.inputs).subspan(1, 1));
    const MaskedRows* r = rows(source);
    auto dim = node.attrs.get_or("dim", std::int64_t{0});
    if (dim < 0) dim += graph_[y].type.rank();
    const Attr* alpha = node.attrs.find("alpha");
    const bool once = !alpha || *alpha == Attr(std::int64_t{1}) || *alpha == Attr(1.0);
    if (!found || !r || rows(y) || !once || dim >= graph_[y].type.rank() || r->rows != Rows{static_cast<int>(dim), 1} ||
        masks_.at(r->symbol).value != masks_.at(found->symbol).value)
      return false;
    const Shape mask = mask_shape(found->symbol);
    const int which = found->coordinates[0];
    if (graph_[y].type.shape.size(r->rows.dim) != mask.size(which)) return false;
    const TensorType type = graph_[source].type;
    auto dims = type.shape.sizes(), ones = std::vector<std::int64_t>(dims.size(), 1);
    for (auto* list : {&dims, &ones}) {
      list->erase(list->begin() + dim);
      const auto sizes = mask.sizes();
      list->insert(list->begin() + dim, sizes.begin(), sizes.end());
    }
    const Val where = calls::view(mask_of(r->symbol), Shape(ones)), split = calls::view(c_.value(source), Shape(dims));
    Val sum = calls::where(where, split, number(type.dtype, 0));
    std::vector<std::int64_t> others;
    for (int d = 0; d < mask.rank(); ++d)
      if (d != which) others.push_back(dim + d);
    if (!others.empty())
      sum = c_.aten(aten::op::sum_dim_IntList, {sum}, {{"dim", others}, {"keepdim", false}, {"dtype", type.dtype}});
    out_.add(aten::op::add_Tensor, {y, sum.id()}, {}, node.outputs[0], node.loc);
    return true;
  }

  // x[mask].shape[0]
  bool count_rows(const Node& node) {
    if (node.op != aten::op::sym_size_int || node.outputs.size() != 1) return false;
    const MaskedRows* r = rows(node.inputs[0]);
    auto dim = node.attrs.get_or("dim", std::int64_t{0});
    if (dim < 0) dim += graph_[node.inputs[0]].type.rank();
    if (dim != r->rows.dim || r->rows.inner != 1) return false;
    out_.add(aten::op::item, {count(r->symbol).id()}, {}, node.outputs[0], node.loc);
    return true;
  }

  // y[mask] = rows of the same mask.
  bool put_back(const Node& node) {
    if (node.op != aten::op::index_put || node.inputs.size() < 3 || node.outputs.size() != 1) return false;
    const ValueId base = node.inputs[0], values = node.inputs.back();
    const std::span indices(node.inputs.data() + 1, node.inputs.size() - 2);
    const MaskedRows* r = rows(values);
    if (!r || rows(base) || r->rows.inner != 1) return false;
    const Mask& of = masks_.at(r->symbol);
    const Shape shape = graph_[base].type.shape, mask = mask_shape(r->symbol), from = graph_[values].type.shape;
    const auto chosen = choice(graph_, indices);
    const auto found = lookup(indices);
    if (chosen ? equals_[chosen->mask] != of.value
               : !found || masks_.at(found->symbol).value != of.value || !is_mask(*found, shape))
      return false;
    // Values have the shape of y[mask], or are broadcast to it: counted from the last dim.
    const int behind = shape.rank() - (chosen ? chosen->dim : found->dim) - mask.rank();
    if (behind < 0 || from.rank() - 1 - r->rows.dim != behind) return false;
    auto dims = from.sizes();
    dims.erase(dims.begin() + r->rows.dim);
    const auto places = mask.sizes();
    dims.insert(dims.begin() + r->rows.dim, places.begin(), places.end());
    Val content = calls::view(c_.value(values), Shape(dims));
    if (node.attrs.get_or("accumulate", false)) content = calls::add(c_.value(base), content);
    auto mask_dims = places;
    mask_dims.insert(mask_dims.end(), static_cast<std::size_t>(behind), 1);
    const Val where = calls::view(mask_of(r->symbol), Shape(mask_dims));
    out_.add(aten::op::where_self, {where.id(), content.id(), base}, {}, node.outputs[0], node.loc);
    return true;
  }

  // The call on all rows, if what it does with one has nothing to do with the others.
  bool each_row(Node& node) {
    const Node before = node;
    const std::string symbol = the_mask(node);
    if (symbol.empty() || !node.regions.empty()) return false;
    const std::int64_t count = masks_.at(symbol).count;
    for (auto& [name, attr] : std::vector(node.attrs.begin(), node.attrs.end()))
      if (const auto* list = std::get_if<std::vector<SymbolicArgument>>(&attr)) {
        std::vector<std::int64_t> numbers;
        for (const SymbolicArgument& a : *list)
          if (a.size && whole(*a.size).is_number()) numbers.push_back(whole(*a.size).value());
        if (numbers.size() == list->size()) node.attrs.set(name, numbers);
      }
    std::vector<Shape> said;
    for (ValueId v : node.outputs) {
      said.push_back(v == no_value ? Shape() : graph_[v].type.shape);
      if (v != no_value) graph_[v].type.shape = whole(said.back());
    }
    if (followed(node, symbol, count, said)) {
      out_.keep(std::move(node));
      return true;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != no_value) graph_[node.outputs[i]].type.shape = said[i];
    node = before;
    return false;
  }

  bool followed(const Node& node, const std::string& symbol, std::int64_t count, const std::vector<Shape>& said) {
    const auto trial = try_node(graph_, node);
    if (!trial.ok() || trial->results.size() < node.outputs.size()) return false;
    RowsOf given(trial->graph.values.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const MaskedRows* r = rows(node.inputs[i])) given[trial->operands[i]] = r->rows;
    const auto results = follow_rows(trial->graph, count, std::move(given));
    if (!results) return false;
    // Where the rows are is where the program says that their number is a size, and nowhere else.
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto& made = (*results)[i];
      if (node.outputs[i] == no_value) continue;
      for (int d = 0; d < said[i].rank(); ++d)
        if (names_mask(said[i][d]) != (made && made->dim == d)) return false;
      if (!made) continue;
      const auto symbols = said[i][made->dim].symbols();
      if (symbols.size() != 1 || said[i][made->dim] != Dim(symbols[0]) * Dim(made->inner)) return false;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (const auto& made = (*results)[i]; made && node.outputs[i] != no_value)
        rows_[node.outputs[i]] = MaskedRows{symbol, *made};
    return true;
  }

  // The one mask whose rows the node takes.
  std::string the_mask(const Node& node) const {
    std::string found;
    for (ValueId v : node.inputs)
      if (const MaskedRows* r = rows(v)) {
        if (!found.empty() && masks_.at(found).value != masks_.at(r->symbol).value) return {};
        found = r->symbol;
      }
    return found;
  }

  // Sums and means over the rows: what is not chosen adds nothing.
  bool reduce(const Node& node) {
    const bool mean = node.op.overload_of(aten::op::mean);
    if ((!mean && !node.op.overload_of(aten::op::sum)) || node.outputs.size() != 1 || is_sized(node)) return false;
    const MaskedRows* r = rows(node.inputs[0]);
    if (!r || r->rows.inner != 1) return false;
    const ValueId x = node.inputs[0], result = node.outputs[0];
    const TensorType type = graph_[x].type;
    std::vector<std::int64_t> places(static_cast<std::size_t>(type.rank()), 1);
    places[static_cast<std::size_t>(r->rows.dim)] = masks_.at(r->symbol).count;
    const Val where = calls::view(mask_of(r->symbol), Shape(places));
    Node sum = node;
    sum.inputs[0] = calls::where(where, c_.value(x), number(type.dtype, 0)).id();
    if (!mean) {
      out_.keep(std::move(sum));
      return true;
    }
    const TensorType made = graph_[result].type;
    if (!is_float(made.dtype)) return false;
    sum.op = node.op == aten::op::mean ? aten::op::sum : aten::op::sum_dim_IntList;
    sum.outputs = {graph_.add_value(fresh("sum"), made)};
    const ValueId total = sum.outputs[0];
    out_.keep(std::move(sum));
    // Elements that one of the result is the mean of: the chosen rows, times the other dims that go. Counted in floats,
    // which targets without integers have as well.
    const std::int64_t others = type.shape.elements() / masks_.at(r->symbol).count / made.shape.elements();
    const Val one = number(DType::f32, others), none = number(DType::f32, 0), mask = mask_of(r->symbol);
    Val divisor = c_.aten(aten::op::sum, {calls::where(mask, one, none)});
    if (made.dtype != DType::f32) divisor = c_.aten(aten::op::to_dtype, {divisor}, {{"dtype", made.dtype}});
    out_.add(aten::op::div_Tensor, {total, divisor.id()}, {}, result, node.loc);
    return true;
  }

  // How many rows the mask chooses. PyTorch counts in int64, lowerings in int32.
  Val count(const std::string& symbol) {
    const Val rows = c_.aten(aten::op::sum, {mask_of(symbol)});
    graph_[rows.id()].type.dtype = DType::i64;
    return rows;
  }
  const Shape& mask_shape(const std::string& symbol) const { return graph_[masks_.at(symbol).value].type.shape; }
  // torch.where takes numbers, too.
  Val mask_of(const std::string& symbol) {
    const Val mask = c_.value(masks_.at(symbol).value);
    if (mask.dtype() == DType::boolean) return mask;
    return c_.aten(aten::op::ne_Scalar, {mask}, {{"other", std::int64_t{0}}});
  }
  Val number(DType type, std::int64_t n) {
    return c_.value(graph_.add_value(fresh("number"), {type, Shape(), std::nullopt},
                                     constant_bytes(type, std::vector<std::int64_t>{n})));
  }
  std::string fresh(const char* what) const { return fmt::format("{}.{}", what, graph_.values.size()); }

  Graph& graph_;
  const Masks& masks_;
  const std::vector<ValueId>& equals_;
  Rewriter out_;
  Composer c_;
  std::vector<std::optional<MaskedRows>> rows_;  // of the values that the program had
  std::unordered_map<ValueId, Coordinate> coordinates_;
};

}  // namespace

void compute_masked_wholes(Graph& graph) {
  const auto chooses = [&](const Node& node) { return chosen_rows(graph, node) || gives_indices(graph, node); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), chooses)) return;
  const std::vector<ValueId> equals = first_equals(graph);
  for (Masks masks = masks_of(graph, equals); !masks.empty();) {
    Graph changed = graph;
    Wholes wholes(changed, masks, equals);
    try {
      if (wholes.run()) {
        graph = std::move(changed);
        return;
      }
    } catch (const Refusal&) { return; } catch (const std::domain_error&) {
      return;
    } catch (const std::overflow_error&) {
      return;  // a size that is none for all rows: there is a quotient by (u0 - 6)
    }
    for (const std::string& symbol : wholes.failed) masks.erase(symbol);
  }
}

}  // namespace tosaic
