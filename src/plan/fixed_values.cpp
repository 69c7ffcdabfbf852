// SPDX-License-Identifier: Apache-2.0
#include "plan/fixed_values.h"

#include <algorithm>

#include "ops/definitions/tosa_op.h"
#include "plan/constant_graph.h"

namespace tosaic::plan {

FixedValues::FixedValues(const Graph& graph, const Uses& uses,
                         const std::function<Result<Bytes>(const Graph& constants)>& compute)
    : graph_(graph), uses_(uses), compute_(compute), fixed_(graph.values.size(), false) {
  for (ValueId v = 0; v < graph.values.size(); ++v) fixed_[v] = graph[v].is_constant() && !graph[v].size;
  for (const Node& node : graph.nodes)
    if (const tosa::Op* op = tosa::find(node.op); op && op->eval && is_fixed(node)) {
      fixed_[node.outputs[0]] = true;
      any_from_int8_ = any_from_int8_ || (node.op == tosa::op::cast && graph[node.inputs[0]].type.dtype == DType::i8);
    }
}

bool FixedValues::is_fixed(const Node& node) const {
  return !node.inputs.empty() && node.outputs.size() == 1 && node.regions.empty() && node.op != tosa::op::custom &&
         !tosa::is_variable(node.op) && !uses_.visible[node.outputs[0]] &&
         std::ranges::all_of(node.inputs, [&](ValueId v) { return v != no_value && fixed_[v]; });
}

Result<Bytes> FixedValues::content(ValueId v) const {
  if (graph_[v].is_constant()) return graph_[v].constant;
  if (!(*this)[v]) return Bytes();
  return compute_(constant_graph(graph_, uses_.producer, v));
}

}  // namespace tosaic::plan
