// SPDX-License-Identifier: Apache-2.0
// What writes rows by index is marked "distinct" where no index can be named twice: then it is one SCATTER, which
// leaves repeated indices open. A program's states are taken to be written so as well: the rows of a cache go to
// indices of their own, whatever computes these, and are written where the cache lies.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/tensor.h"
#include "normalise/normalise.h"
#include "ops/puts.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

// Integers of which no two are equal: how far apart the first and the last of them are, at most. Places from the end of
// a dim are negative, so numbers that are further apart than the dim is long may be one index all the same.
using Spread = std::optional<std::int64_t>;

Spread of_constant(const Value& value) {
  std::set<std::int64_t> met;
  const std::int64_t count = value.type.shape.elements();
  for (std::int64_t i = 0; i < count; ++i)
    if (!met.insert(element_as_integer(value.type.dtype, value.constant.data(), static_cast<std::size_t>(i))).second)
      return std::nullopt;
  return met.empty() ? 0 : *met.rbegin() - *met.begin();
}

bool moves_all(const Node& node) {
  const FoundOp found = find_aten(node.op);
  return node.inputs.size() == 1 && node.outputs.size() == 1 && found.rule->passes_values && found.schema->view;
}

class DistinctIndices {
 public:
  explicit DistinctIndices(const Graph& graph) : graph_(graph) {
    for (const State& state : graph.states) states_.insert(state.input);
  }

  void mark(Node& node) {
    const FoundOp found = find_aten(node.op);
    if (!found.op || node.inputs.empty() || node.outputs.size() != 1) return;
    const Schema& schema = *found.schema;
    if (moves_all(node) && states_.contains(node.inputs[0])) states_.insert(node.outputs[0]);
    const bool by_list = schema.argument("indices") != nullptr;
    if (!puts(schema) || (!by_list && !schema.argument("index")) || node.inputs.size() < 3) return;
    const bool state = states_.contains(node.inputs[0]);
    if (state) states_.insert(node.outputs[0]);
    if (state || (by_list ? are_distinct(node) : are_distinct_along(node))) set_mark(node, mark::distinct, true);
  }

  void learn(const Node& node) {
    if (node.outputs.empty() || node.outputs[0] == no_value) return;
    const Value& result = graph_[node.outputs[0]];
    if (!is_integer(result.type.dtype)) return;
    if (const Spread spread = spread_of_result(node, result)) known_[node.outputs[0]] = *spread;
  }

 private:
  Spread spread(ValueId v) const {
    if (v == no_value || !is_integer(graph_[v].type.dtype) || !graph_[v].type.shape.is_static()) return std::nullopt;
    if (graph_[v].type.shape.elements() == 1) return 0;
    if (graph_[v].is_constant()) return of_constant(graph_[v]);
    const auto it = known_.find(v);
    return it == known_.end() ? std::nullopt : Spread(it->second);
  }

  // A number added to all of them, or all of them as they are, elsewhere or in part.
  Spread spread_of_result(const Node& node, const Value& result) const {
    const FoundOp found = find_aten(node.op);
    if (!found.op || node.inputs.empty() || !result.type.shape.is_static()) return std::nullopt;
    const std::int64_t count = result.type.shape.elements();
    const auto is = [&](Operator op) { return node.op.overload_of(op); };
    if (is(aten::op::add_Tensor) || is(aten::op::sub_Tensor) || is(aten::op::rsub_Tensor)) {
      Spread sum = 0;
      int many = 0;
      for (ValueId v : node.inputs) {
        if (v == no_value) continue;
        const Spread one = spread(v);
        if (!one || (graph_[v].type.shape.elements() != 1 && ++many > 1)) return std::nullopt;
        sum = *sum + *one;
      }
      const bool plain = node.attrs.get_or("alpha", std::int64_t{1}) == 1;
      return plain ? sum : std::nullopt;
    }
    if (is(aten::op::index_Tensor) && node.inputs.size() == 2 && graph_[node.inputs[0]].type.rank() == 1)
      return spread(node.inputs[1]) ? spread(node.inputs[0]) : std::nullopt;
    if (node.inputs.size() != 1 || node.outputs.size() != 1) return std::nullopt;
    const std::int64_t before = graph_[node.inputs[0]].type.shape.elements();
    const bool copies = is(aten::op::clone) || is(aten::op::to_dtype) || is(aten::op::_to_copy);
    const bool whole = count == before && (moves_all(node) || copies);
    return whole || is(aten::op::slice_Tensor) ? spread(node.inputs[0]) : std::nullopt;
  }

  // x[i, j, ...]: each dim that the indices have together is one of an index in which no number repeats.
  bool are_distinct(const Node& node) const {
    const Shape& x = graph_[node.inputs[0]].type.shape;
    std::map<int, bool> told;  // by dim from the last, of those that are not one
    for (std::size_t i = 1; i + 1 < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == no_value) continue;
      const TensorType& type = graph_[v].type;
      const int dim = static_cast<int>(i) - 1;
      if (!type.shape.is_static() || dim >= x.rank() || !x[dim].is_number()) return false;
      const Spread known = spread(v);
      const bool distinct = known && *known < x.size(dim);
      for (int d = 0; d < type.rank(); ++d)
        if (type.shape.size(d) != 1) told[type.rank() - d] |= distinct;
    }
    return std::ranges::all_of(told, [](const auto& dim) { return dim.second; });
  }

  // Slices of a dim, or the elements of a vector.
  bool are_distinct_along(const Node& node) const {
    const Shape &x = graph_[node.inputs[0]].type.shape, &index = graph_[node.inputs[1]].type.shape;
    std::int64_t dim = node.attrs.get_or("dim", std::int64_t{0});
    if (dim < 0) dim += x.rank();
    if (dim < 0 || dim >= x.rank() || index.rank() > 1 || !x[static_cast<int>(dim)].is_number()) return false;
    const Spread known = spread(node.inputs[1]);
    return known && *known < x.size(static_cast<int>(dim));
  }

  const Graph& graph_;
  std::set<ValueId> states_;  // inputs, and what is a state's content in another shape or behind a write
  std::map<ValueId, std::int64_t> known_;
};

}  // namespace

void mark_distinct_indices(Graph& graph) {
  DistinctIndices indices(graph);
  for (Node& node : graph.nodes) {
    indices.mark(node);
    indices.learn(node);
  }
}

}  // namespace tosaic
