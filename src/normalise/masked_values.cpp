// SPDX-License-Identifier: Apache-2.0
// x[mask] has as many rows as the mask has true elements, which only the values say. What a program does with such rows
// is mostly done row by row and put back, or summed: then all rows may be computed, and the mask chooses.
//
//   x[mask] *= 0.1               becomes  x = where(mask, x * 0.1, x)
//   y[mask] = layer(x[mask])              y = where(mask, layer(x), y)
//   x[mask].mean()                        where(mask, x, 0).sum() / mask.sum()
//   x[mask].shape[0]                      mask.sum().item()
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "normalise/normalise.h"
#include "normalise/row_wise.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// The mask that a size comes of, and how many rows it chooses from.
struct Mask {
  ValueId value = no_value;
  std::int64_t count = 0;
};
using Masks = std::map<std::string, Mask>;  // by the symbol of that size

// Rows of the mask whose symbol it is.
struct MaskedRows {
  std::string symbol;
  Rows rows;
};

std::optional<Symbol> only_symbol(const Dim& dim) {
  for (const Symbol& symbol : dim.symbols())
    if (dim == Dim(symbol)) return symbol;
  return std::nullopt;
}

// x[:, mask]: the mask, and before which dims of x it stands.
struct Choice {
  ValueId mask = no_value;
  int dim = 0;
};
std::optional<Choice> choice(const Graph& graph, std::span<const ValueId> indices) {
  Choice found;
  while (found.dim < static_cast<int>(indices.size()) && indices[static_cast<std::size_t>(found.dim)] == no_value)
    ++found.dim;
  if (found.dim + 1 != static_cast<int>(indices.size())) return std::nullopt;
  found.mask = indices.back();
  const Value& mask = graph[found.mask];
  if (mask.type.dtype != DType::boolean || mask.type.rank() == 0 || !mask.type.shape.is_static() || mask.is_constant())
    return std::nullopt;
  return found;
}
std::optional<Choice> chosen_rows(const Graph& graph, const Node& node) {
  if (node.op == "aten.index.Tensor" && node.inputs.size() > 1) return choice(graph, std::span(node.inputs).subspan(1));
  if (node.op == "aten.masked_select.default" && node.inputs.size() == 2 &&
      graph[node.inputs[0]].type.shape == graph[node.inputs[1]].type.shape)
    return choice(graph, std::span(node.inputs).last(1));
  return std::nullopt;
}

// x[x > 0] = x[x > 0].log() makes its mask twice: for each value, the first one that is computed in the same way.
// Random numbers, which are not, are no operators of ours.
std::vector<ValueId> first_equals(const Graph& graph) {
  std::vector<ValueId> first(graph.values.size());
  std::iota(first.begin(), first.end(), 0);
  std::map<std::pair<std::string, std::vector<ValueId>>, std::vector<const Node*>> met;
  for (const Node& node : graph.nodes) {
    if (node.outputs.size() != 1 || node.outputs[0] == no_value || !find_aten(node.op).op || !node.regions.empty())
      continue;
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& v : inputs)
      if (v != no_value) v = first[v];
    auto& alike = met[{node.op, std::move(inputs)}];
    const auto equal = std::find_if(alike.begin(), alike.end(), [&](const Node* n) {
      return n->attrs == node.attrs && graph[n->outputs[0]].type == graph[node.outputs[0]].type;
    });
    if (equal == alike.end())
      alike.push_back(&node);
    else
      first[node.outputs[0]] = (*equal)->outputs[0];
  }
  return first;
}

Masks masks_of(const Graph& graph, const std::vector<ValueId>& equals) {
  Masks masks;
  std::set<std::string> unclear;
  for (const Node& node : graph.nodes) {
    const auto chosen = chosen_rows(graph, node);
    if (!chosen || node.outputs.size() != 1 || node.outputs[0] == no_value) continue;
    const Shape &x = graph[node.inputs[0]].type.shape, &rows = graph[node.outputs[0]].type.shape;
    const Shape& mask = graph[chosen->mask].type.shape;
    const auto symbol = chosen->dim < rows.rank() ? only_symbol(rows[chosen->dim]) : std::nullopt;
    if (!symbol || !x.is_static() || mask.elements() < 2) continue;  // a row by itself is told from no other dim
    const ValueId value = equals[chosen->mask];
    const auto [known, fresh] = masks.emplace(symbol->name, Mask{value, mask.elements()});
    if (!fresh && known->second.value != value) unclear.insert(symbol->name);
  }
  for (const std::string& symbol : unclear) masks.erase(symbol);
  return masks;
}

// The graph with all rows of these masks; what cannot be followed is `failed`.
class Wholes {
 public:
  Wholes(Graph& graph, const Masks& masks, const std::vector<ValueId>& equals)
      : graph_(graph), masks_(masks), equals_(equals), out_(graph), rows_(graph.values.size()) {}

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
    if (const auto chosen = chosen_rows(graph_, node); chosen && node.outputs.size() == 1 && choose(node, *chosen))
      return;
    const bool takes = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return rows(v); });
    if (!takes) {
      if (is_sized(node)) return fail(node);
      return out_.keep(std::move(node));
    }
    if (node.outputs.empty()) return;  // an assertion
    if (count_rows(node) || put_back(node) || each_row(node) || reduce(node)) return;
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
    out_.add("aten.view.default", {node.inputs[0]}, {{"size", graph_[result].type.shape.sizes()}}, result, node.loc);
    rows_[result] = MaskedRows{symbol->name, {chosen.dim, 1}};
    return true;
  }

  // x[mask].shape[0]
  bool count_rows(const Node& node) {
    if (node.op != "aten.sym_size.int" || node.outputs.size() != 1) return false;
    const MaskedRows* r = rows(node.inputs[0]);
    auto dim = node.attrs.get_or("dim", std::int64_t{0});
    if (dim < 0) dim += graph_[node.inputs[0]].type.rank();
    if (dim != r->rows.dim || r->rows.inner != 1) return false;
    out_.add("aten.item.default", {count(r->symbol, node.loc)}, {}, node.outputs[0], node.loc);
    return true;
  }

  // y[mask] = rows of the same mask.
  bool put_back(const Node& node) {
    if (node.op != "aten.index_put.default" || node.inputs.size() < 3 || node.outputs.size() != 1) return false;
    const ValueId base = node.inputs[0], values = node.inputs.back();
    const auto chosen = choice(graph_, std::span(node.inputs).subspan(1, node.inputs.size() - 2));
    const MaskedRows* r = rows(values);
    if (!chosen || !r || rows(base) || masks_.at(r->symbol).value != equals_[chosen->mask] || r->rows.inner != 1)
      return false;
    // Values have the shape of y[mask], or are broadcast to it: counted from the last dim.
    const Shape &shape = graph_[base].type.shape, &mask = graph_[chosen->mask].type.shape;
    const Shape from = graph_[values].type.shape;
    const int behind = shape.rank() - chosen->dim - mask.rank();
    if (behind < 0 || from.rank() - 1 - r->rows.dim != behind) return false;
    auto dims = from.sizes();
    dims.erase(dims.begin() + r->rows.dim);
    const auto places = mask.sizes();
    dims.insert(dims.begin() + r->rows.dim, places.begin(), places.end());
    ValueId content = view(values, Shape(dims), node.loc);
    if (const auto flag = node.attrs.get_or("accumulate", false); flag)
      content = call("aten.add.Tensor", {base, content}, {}, graph_[base].type, node.loc);
    auto mask_dims = places;
    mask_dims.insert(mask_dims.end(), static_cast<std::size_t>(behind), 1);
    const ValueId where = view(chosen->mask, Shape(mask_dims), node.loc);
    out_.add("aten.where.self", {where, content, base}, {}, node.outputs[0], node.loc);
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
    const bool mean = node.op.starts_with("aten.mean.");
    if ((!mean && !node.op.starts_with("aten.sum.")) || node.outputs.size() != 1 || is_sized(node)) return false;
    const MaskedRows* r = rows(node.inputs[0]);
    if (!r || r->rows.inner != 1) return false;
    const ValueId x = node.inputs[0], result = node.outputs[0];
    const TensorType type = graph_[x].type;
    std::vector<std::int64_t> places(static_cast<std::size_t>(type.rank()), 1);
    places[static_cast<std::size_t>(r->rows.dim)] = masks_.at(r->symbol).count;
    const ValueId where = view(masks_.at(r->symbol).value, Shape(places), node.loc);
    Node sum = node;
    sum.inputs[0] = call("aten.where.self", {where, x, number(type.with(Shape()), 0)}, {}, type, node.loc);
    if (!mean) {
      out_.keep(std::move(sum));
      return true;
    }
    const TensorType made = graph_[result].type;
    if (!is_float(made.dtype)) return false;
    sum.op = node.op == "aten.mean.default" ? "aten.sum.default" : "aten.sum.dim_IntList";
    sum.outputs = {graph_.add_value(fresh("sum"), made)};
    const ValueId total = sum.outputs[0];
    out_.keep(std::move(sum));
    // Elements that one of the result is the mean of: the chosen rows, times the other dims that go. Counted in floats,
    // which targets without integers have as well.
    const std::int64_t others = type.shape.elements() / masks_.at(r->symbol).count / made.shape.elements();
    const TensorType real{DType::f32, Shape(), std::nullopt};
    const ValueId one = number(real, others), none = number(real, 0), mask = masks_.at(r->symbol).value;
    ValueId divisor = call("aten.where.self", {mask, one, none}, {}, real.with(graph_[mask].type.shape), node.loc);
    divisor = call("aten.sum.default", {divisor}, {}, real, node.loc);
    if (made.dtype != real.dtype)
      divisor = call("aten.to.dtype", {divisor}, {{"dtype", made.dtype}}, made.with(Shape()), node.loc);
    out_.add("aten.div.Tensor", {total, divisor}, {}, result, node.loc);
    return true;
  }

  // How many rows the mask chooses: i64 [].
  ValueId count(const std::string& symbol, const LocRef& loc) {
    return call("aten.sum.default", {masks_.at(symbol).value}, {}, {DType::i64, Shape(), std::nullopt}, loc);
  }
  ValueId number(const TensorType& type, std::int64_t n) {
    return graph_.add_value(fresh("number"), type, constant_bytes(type.dtype, std::vector<std::int64_t>{n}));
  }
  ValueId view(ValueId x, const Shape& shape, const LocRef& loc) {
    if (graph_[x].type.shape == shape) return x;
    return call("aten.view.default", {x}, {{"size", shape.sizes()}}, graph_[x].type.with(shape), loc);
  }
  ValueId call(const char* op, std::vector<ValueId> inputs, Attrs attrs, const TensorType& type, const LocRef& loc) {
    return out_.add(op, std::move(inputs), std::move(attrs), graph_.add_value(fresh("masked"), type), loc);
  }
  std::string fresh(const char* what) const { return fmt::format("{}.{}", what, graph_.values.size()); }

  Graph& graph_;
  const Masks& masks_;
  const std::vector<ValueId>& equals_;
  Rewriter out_;
  std::vector<std::optional<MaskedRows>> rows_;  // of the values that the program had
};

}  // namespace

void compute_masked_wholes(Graph& graph) {
  const auto chooses = [&](const Node& node) { return chosen_rows(graph, node).has_value(); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), chooses)) return;
  const std::vector<ValueId> equals = first_equals(graph);
  for (Masks masks = masks_of(graph, equals); !masks.empty();) {
    Graph changed = graph;
    Wholes wholes(changed, masks, equals);
    if (wholes.run()) {
      graph = std::move(changed);
      return;
    }
    for (const std::string& symbol : wholes.failed) masks.erase(symbol);
  }
}

}  // namespace tosaic
