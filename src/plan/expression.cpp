// SPDX-License-Identifier: Apache-2.0
#include "plan/expression.h"

#include <algorithm>
#include <map>

#include "ops/definitions/walk.h"

namespace tosaic::plan {
std::size_t walked_operands(const tosa::Op& op) {
  const auto constants = std::find_if(op.inputs.begin(), op.inputs.end(), [](const auto& in) { return in.constant; });
  return static_cast<std::size_t>(constants - op.inputs.begin());
}

Expression expression_of(const Graph& graph, const std::vector<std::uint32_t>& nodes) {
  Expression e;
  e.output = graph.nodes[nodes.back()].outputs[0];
  e.shape = graph[e.output].type.shape;
  std::map<ValueId, int> at;
  for (std::uint32_t n : nodes) {
    const Node& node = graph.nodes[n];
    Expression::Call call{n, {}};
    for (std::size_t i = 0; i < walked_operands(*tosa::find(node.op)); ++i) {
      const ValueId v = node.inputs[i];
      const auto [known, added] = at.try_emplace(v, static_cast<int>(e.inputs.size()));
      if (added) {
        e.inputs.push_back({v, {}});
        const Shape& shape = graph[v].type.shape;
        if (shape.is_static() && e.shape.is_static())
          e.inputs.back().strides = tosa::broadcasting(shape, e.shape).strides;
      }
      call.operands.push_back(known->second);
    }
    at[node.outputs[0]] = ~static_cast<int>(e.calls.size());
    e.calls.push_back(std::move(call));
  }
  return e;
}

}  // namespace tosaic::plan
