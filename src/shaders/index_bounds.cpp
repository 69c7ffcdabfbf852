// SPDX-License-Identifier: Apache-2.0
#include "shaders/index_bounds.h"

#include "ops/definitions/extension.h"

#include <algorithm>
#include <unordered_map>

namespace tosaic::shaders {
namespace {

// The elements of a constant that are least and greatest.
struct Span {
  std::int64_t least = 0, greatest = 0;
};

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes)
      for (ValueId v : node.outputs) made_by_.emplace(v, &node);
    for (const Node& node : graph.nodes)
      if (node.op == tosa::op::gather || node.op == tosa::op::scatter)
        take(node.inputs.at(1), {0, graph[node.inputs.at(0)].type.shape[1]});
      else if (node.op == extension::op::scaled_gather)
        take(node.inputs.at(extension::scaled_gather::indices),
             {0, graph[node.inputs.at(extension::scaled_gather::scales)].type.shape[0]});
  }

  std::optional<IndexBounds> of(ValueId input) const {
    const auto found = found_.find(input);
    if (found == found_.end() || (found->second.end.is_number() && found->second.end.value() <= 0)) return std::nullopt;
    return found->second;
  }

 private:
  const Node* maker(ValueId v, Operator op) const {
    const auto made = made_by_.find(v);
    return made != made_by_.end() && made->second->op == op ? made->second : nullptr;
  }

  // Of two tables both count, where they are numbers.
  void take(ValueId v, const IndexBounds& bounds) {
    if (const auto made = made_by_.find(v); made != made_by_.end()) return take_operands(*made->second, bounds);
    const auto [known, fresh] = found_.emplace(v, bounds);
    if (fresh) return;
    IndexBounds& both = known->second;
    both.first = std::max(both.first, bounds.first);
    if (bounds.end.is_number() && (!both.end.is_number() || bounds.end.value() < both.end.value()))
      both.end = bounds.end;
  }

  void take_operands(const Node& node, const IndexBounds& bounds) {
    if (keeps_all(node)) {
      const std::size_t moved = node.op == tosa::op::concat ? node.inputs.size() : 1;  // the others are shapes
      for (std::size_t i = 0; i < moved; ++i) take(node.inputs[i], bounds);
    } else if (node.op == tosa::op::add && bounds.end.is_number()) {
      for (const std::size_t i : {0, 1})
        if (const auto added = added_to(node, i))
          take(node.inputs[i], {bounds.first - added->least, bounds.end.value() - added->greatest});
    } else if (node.op == tosa::op::select) {
      take_from_end(node, bounds);
    }
  }

  // Every element of the operands is one of the result's, as it is. (A slice leaves some out, which may be anything.)
  static bool keeps_all(const Node& node) {
    const tosa::Op* op = tosa::find(node.op);
    return op && op->moves == tosa::Moves::all;
  }

  // What each element of the addition's operand i is added to: one number, or all of several.
  std::optional<Span> added_to(const Node& node, std::size_t i) const {
    const Value &v = graph_[node.inputs[i]], &other = graph_[node.inputs[1 - i]];
    const auto span = span_of(other);
    const bool all = v.type.shape.is_static() && v.type.shape.elements() == 1;
    return span && (all || span->least == span->greatest) ? span : std::nullopt;
  }

  static std::optional<Span> span_of(const Value& value) {
    if (!value.is_constant() || value.type.dtype != DType::i32 || value.type.shape.elements() == 0) return std::nullopt;
    const auto [least, greatest] = std::ranges::minmax(value.constant.as<std::int32_t>());
    return Span{least, greatest};
  }

  // place < 0 ? place + rows : place, as PyTorch counts from the end.
  void take_from_end(const Node& node, const IndexBounds& bounds) {
    const ValueId index = node.inputs[2];
    const Node *below = maker(node.inputs[0], tosa::op::greater), *moved = maker(node.inputs[1], tosa::op::add);
    if (!below || !moved || below->inputs[1] != index || !bounds.end.is_number()) return;
    const auto zero = span_of(graph_[below->inputs[0]]);
    const std::size_t operand = moved->inputs[0] == index ? 0 : 1;
    const auto rows = added_to(*moved, operand);
    if (moved->inputs[operand] != index || !rows || !zero || zero->least != 0 || zero->greatest != 0) return;
    if (rows->least < 0) return;
    take(index, {bounds.first - rows->greatest, bounds.end});  // with what may lie between the two stretches
  }

  const Graph& graph_;
  std::unordered_map<ValueId, const Node*> made_by_;
  std::unordered_map<ValueId, IndexBounds> found_;
};

}  // namespace

std::vector<std::optional<IndexBounds>> find_index_bounds(const Graph& graph) {
  const Search search(graph);
  std::vector<std::optional<IndexBounds>> bounds;
  for (ValueId v : graph.inputs) bounds.push_back(graph[v].type.dtype == DType::i32 ? search.of(v) : std::nullopt);
  return bounds;
}

}  // namespace tosaic::shaders
