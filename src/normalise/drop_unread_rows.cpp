// SPDX-License-Identifier: Apache-2.0
// What slices leave out is not computed: they move before calls that treat each index of the dim by itself.
//
//   gelu(linear(x))[:, 0]   becomes   gelu(linear(x[:, 0:1]))[:, 0]
//   (y * z)[:, 2:-2]                  y[:, 2:-2] * z[:, 2:-2]
//
// It saves work, and numbers of any size that nobody reads take no part in the range of those that somebody does: the
// ends of an inverse STFT are divided by next to nothing before they are cut off.
#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/tosa_operators.h"
#include "normalise/normalise.h"
#include "normalise/row_wise.h"
#include "ops/definitions/tosa_op.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// Indices `first` to before `end` of a dim.
struct Interval {
  int dim = 0;
  std::int64_t first = 0, end = 0;
  std::int64_t count() const { return end - first; }
  auto operator<=>(const Interval&) const = default;
};

// A result that is such an interval of a tensor, perhaps in another shape (select).
struct Part {
  ValueId result = no_value;
  Interval read;
};

// Every result that somebody reads, by the call's own lowering: one SLICE along one dim, and a RESHAPE at most.
std::optional<std::vector<Part>> parts_of(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 1 || node.inputs[0] == no_value || !find_aten(node.op).rule->passes_values) return {};
  const Shape& whole = graph[node.inputs[0]].type.shape;
  for (ValueId v : node.outputs)
    if (v != no_value &&
        (!whole.is_static() || !graph[v].type.shape.is_static() || graph[v].type.shape.elements() >= whole.elements()))
      return {};
  const auto trial = try_node(graph, node);
  if (!trial.ok() || trial->results.size() < node.outputs.size()) return {};
  const auto made_by = producers(trial->graph);
  const auto producer = [&](ValueId v) {
    return made_by[v] < 0 ? nullptr : &trial->graph.nodes[static_cast<std::size_t>(made_by[v])];
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == no_value) continue;
    const Node* made = producer(trial->results[i]);
    if (made && made->op == tosa::op::reshape) made = producer(made->inputs[0]);
    if (!made || made->op != tosa::op::slice || made->inputs[0] != trial->operands[0]) return {};
    const auto starts = tosa::View(trial->graph, *made).constant_integers(1);
    if (!starts) return {};
    const Shape& part = trial->graph[made->outputs[0]].type.shape;
    std::optional<Interval> read;
    for (int d = 0; d < whole.rank(); ++d) {
      if (part.size(d) == whole.size(d)) continue;
      if (read) return {};
      const std::int64_t first = (*starts)[static_cast<std::size_t>(d)];
      read = Interval{d, first, first + part.size(d)};
    }
    if (!read) return {};
    parts.push_back({node.outputs[i], *read});
  }
  return parts;
}

class UnreadRows {
 public:
  explicit UnreadRows(Graph& graph)
      : graph_(graph),
        readers_(consumers(graph)),
        made_by_(producers(graph)),
        parts_(graph.values.size()),
        read_whole_(graph.values.size(), 0) {
    for (ValueId v : graph.outputs) read_whole_[v] = 1;
    for (Node& node : graph.nodes) places_.push_back({std::move(node)});
  }

  // Readers before what they read: a slice that moved is met again as a reader of operands.
  bool run() {
    for (std::size_t n = places_.size(); n-- > 0;) {
      narrow(n);
      for (const Node& node : places_[n]) note_reads(node, n);
    }
    graph_.nodes.clear();
    for (auto& place : places_)
      for (Node& node : place) graph_.nodes.push_back(std::move(node));
    return changed_;
  }

 private:
  // The operands of a call that are read like its result: the dim of each, -1 for one that is read whole.
  using Dims = std::vector<int>;

  struct PartAt {
    Part part;
    std::size_t place;
  };

  void note_reads(const Node& node, std::size_t place) {
    if (const auto parts = parts_of(graph_, node)) {
      for (const Part& part : *parts) parts_[node.inputs[0]].push_back({part, place});
      return;
    }
    for (ValueId v : node.inputs)
      if (v != no_value) read_whole_[v] = 1;
  }

  // From the first index to the last that any slice reads; nullopt: that is all of them.
  std::optional<Interval> read_of(ValueId v) {
    const auto& parts = parts_[v];
    if (read_whole_[v] || parts.empty()) return {};
    Interval read = parts[0].part.read;
    for (const PartAt& p : parts) {
      if (p.part.read.dim != read.dim) return {};
      read.first = std::min(read.first, p.part.read.first);
      read.end = std::max(read.end, p.part.read.end);
    }
    return read.count() < graph_[v].type.shape.size(read.dim) ? std::optional(read) : std::nullopt;
  }

  Shape narrowed(ValueId v, int dim, std::int64_t count) const {
    auto sizes = graph_[v].type.shape.sizes();
    sizes[static_cast<std::size_t>(dim)] = count;
    return Shape(std::move(sizes));
  }

  // Where a row of the result is made of the same row of operands: of all that have as many, counted from the last dim,
  // or of the first alone.
  std::vector<Dims> candidates(const Node& node, int dim) const {
    const TensorType& made = graph_[node.outputs[0]].type;
    const std::int64_t count = made.shape.size(dim);
    const Dims none(node.inputs.size(), -1);
    std::vector<Dims> found{none};
    for (std::size_t i = 0; i < none.size(); ++i) {
      if (node.inputs[i] == no_value || !graph_[node.inputs[i]].type.shape.is_static()) continue;
      const Shape& shape = graph_[node.inputs[i]].type.shape;
      if (const int d = dim - made.rank() + shape.rank(); d >= 0 && shape.size(d) == count) found[0][i] = d;
      for (int d = 0; i == 0 && d < shape.rank(); ++d)
        if (shape.size(d) == count) {
          found.push_back(none);
          found.back()[0] = d;
        }
    }
    return found;
  }

  bool keeps_rows(const Node& node, const Dims& dims, int dim) const {
    // Constants are taken as computed: a lowering that folds them would lose their rows.
    const auto trial = try_node(graph_, node, {.operand = [&](std::size_t i, TensorType&, Bytes& elements) {
                                  if (dims[i] >= 0) elements = {};
                                }});
    if (!trial.ok() || trial->results.size() != 1) return false;
    RowsOf given(trial->graph.values.size());
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] >= 0) given[trial->operands[i]] = Rows{dims[i], 1};
    const auto rows = follow_rows(trial->graph, graph_[node.outputs[0]].type.shape.size(dim), std::move(given));
    return rows && (*rows)[0] == Rows{dim, 1};
  }

  // The call of operands with fewer rows. A size that it states (view) is theirs then.
  std::optional<Node> of_fewer(const Node& node, const Dims& dims, int dim, std::int64_t count) const {
    const ValueId y = node.outputs[0];
    const Shape wanted = narrowed(y, dim, count);
    const auto fewer = [&](std::size_t i, TensorType& type, Bytes& elements) {
      if (dims[i] < 0) return;
      type.shape = narrowed(node.inputs[i], dims[i], count);
      elements = {};
    };
    const auto gives_them = [&](const Node& call) {
      const auto trial = try_node(graph_, undeclared(call), {.operand = fewer});
      return trial.ok() && trial->results.size() == 1 && trial->graph[trial->results[0]].type.shape == wanted;
    };
    if (gives_them(node)) return node;
    Node call = node;
    for (const auto& [name, attr] : node.attrs)
      if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&attr);
          sizes && *sizes == graph_[y].type.shape.sizes())
        call.attrs.set(name, wanted.sizes());
    return gives_them(call) ? std::optional(std::move(call)) : std::nullopt;
  }

  // A call of which fewer rows can be computed. Not what quantises: its operand is a float, which integer targets do
  // not slice.
  struct RowCall {
    Node fewer;
    Dims dims;
  };
  std::optional<RowCall> row_call(const Node& node, int dim, std::int64_t count) const {
    if (node.outputs.size() != 1 || node.outputs[0] == no_value || !node.regions.empty() ||
        has_mark(node, mark::effect) || !find_aten(node.op).op || node.op.is_conversion() || parts_of(graph_, node))
      return {};
    for (const Dims& dims : candidates(node, dim))
      if (can_slice(node, dims) && keeps_rows(node, dims, dim))
        if (auto fewer = of_fewer(node, dims, dim, count)) return RowCall{std::move(*fewer), dims};
    return {};
  }

  // Not what has scales of its own for each index, constants only where they are evaluated, and nothing of 64 bits:
  // what has 32 was decided before.
  bool can_slice(const Node& node, const Dims& dims) const {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] >= 0 && !can_slice(graph_[node.inputs[i]])) return false;
    return true;
  }
  static bool can_slice(const Value& x) {
    if (x.type.dtype == DType::i64) return false;
    return !x.type.quantised() || (!x.is_constant() && x.type.scales->scale.size() == 1);
  }

  static constexpr int deepest = 200;  // calls of a chain that is looked at

  // A slice of a convolution's result costs it what is computed as the result is written (activations). It moves there
  // where it saves half of that, or a constant tells that rows may be of any size.
  bool pays(const Node& node, const Dims& dims, const Interval& read, int depth = 0) {
    if (find_aten(node.op).rule->accumulates || 2 * read.count() <= graph_[node.outputs[0]].type.shape.size(read.dim))
      return true;
    bool all_move = true;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) continue;
      const ValueId v = node.inputs[i];
      if (graph_[v].is_constant()) return true;
      all_move &= depth < deepest && moves_on(v, {dims[i], read.first, read.end}, depth + 1);
    }
    return all_move;
  }
  bool moves_on(ValueId v, const Interval& read, int depth) {
    if (made_by_[v] < 0 || readers_[v].size() != 1 || read_whole_[v]) return false;
    const auto [known, is_new] = moves_on_.try_emplace({v, read}, false);
    if (is_new) {
      const Node& node = places_[static_cast<std::size_t>(made_by_[v])][0];
      const auto call = row_call(node, read.dim, read.count());
      known->second = call && pays(node, call->dims, read, depth);
    }
    return known->second;
  }

  void narrow(std::size_t n) {
    if (places_[n].size() != 1 || places_[n][0].outputs.size() != 1 || places_[n][0].outputs[0] == no_value) return;
    const ValueId y = places_[n][0].outputs[0];
    const auto read = read_of(y);
    if (!read) return;
    auto call = row_call(places_[n][0], read->dim, read->count());
    if (!call || !pays(places_[n][0], call->dims, *read)) return;
    changed_ = true;
    places_[n].clear();
    auto& [node, dims] = *call;
    std::map<std::pair<ValueId, int>, ValueId> sliced;  // x * x
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (dims[i] < 0) continue;
      const auto [part, is_new] = sliced.try_emplace({node.inputs[i], dims[i]});
      if (is_new) part->second = slice(n, node.inputs[i], {dims[i], read->first, read->end}, node.loc);
      node.inputs[i] = part->second;
    }
    places_[n].push_back(std::move(node));
    graph_[y].type.shape = narrowed(y, read->dim, read->count());
    for (const PartAt& p : parts_[y]) read_again(p, y, read->first);
  }

  // v[first:end], at the end of that place.
  ValueId slice(std::size_t place, ValueId v, const Interval& i, const LocRef& loc) {
    const ValueId part = graph_.add_value(graph_[v].name + ".read", graph_[v].type.with(narrowed(v, i.dim, i.count())));
    parts_.resize(graph_.values.size());
    read_whole_.resize(graph_.values.size(), 0);
    places_[place].push_back(slice_node(v, i, part, loc));
    return part;
  }
  static Node slice_node(ValueId v, const Interval& i, ValueId result, const LocRef& loc) {
    return {aten::op::slice_Tensor,
            {v},
            {{"dim", std::int64_t{i.dim}}, {"start", i.first}, {"end", i.end}},
            {result},
            loc,
            {}};
  }

  // The part of y, whose first `before` indices are gone. One that is all of y now is an identity.
  void read_again(const PartAt& p, ValueId y, std::int64_t before) {
    auto& place = places_[p.place];
    const auto old = std::ranges::find_if(
        place, [&](const Node& node) { return std::ranges::find(node.outputs, p.part.result) != node.outputs.end(); });
    const LocRef loc = old->loc;
    const Interval read{p.part.read.dim, p.part.read.first - before, p.part.read.end - before};
    std::vector<Node> now;
    const Shape sliced = narrowed(y, read.dim, read.count()), said = graph_[p.part.result].type.shape;
    ValueId from = y;
    if (sliced != said && sliced != graph_[y].type.shape) {
      from = graph_.add_value(graph_[p.part.result].name + ".rows", graph_[y].type.with(sliced));
      now.push_back(slice_node(y, read, from, loc));
    }
    now.push_back(sliced == said ? slice_node(y, read, p.part.result, loc)
                                 : Node{aten::op::view, {from}, {{"size", said.sizes()}}, {p.part.result}, loc, {}});
    std::ranges::replace(old->outputs, p.part.result, no_value);
    const bool done = std::ranges::all_of(old->outputs, [](ValueId v) { return v == no_value; });
    const auto at = done ? place.erase(old) : old + 1;
    place.insert(at, std::make_move_iterator(now.begin()), std::make_move_iterator(now.end()));
  }

  Graph& graph_;
  std::vector<std::vector<std::uint32_t>> readers_;  // as the program was
  std::vector<std::int32_t> made_by_;
  std::vector<std::vector<Node>> places_;  // what stands in a node's place
  std::vector<std::vector<PartAt>> parts_;
  std::vector<char> read_whole_;
  std::map<std::pair<ValueId, Interval>, bool> moves_on_;  // of chains, each link of which asks for all before it
  bool changed_ = false;
};

}  // namespace

bool drop_unread_rows(Graph& graph) { return UnreadRows(graph).run(); }

}  // namespace tosaic
