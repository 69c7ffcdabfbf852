// SPDX-License-Identifier: Apache-2.0
// A call whose lowering hands back its operand does nothing (dropout in eval, detach, contiguous, to() of the same
// dtype, reshape to the same shape); a call without results only asserts. Both go.
#include <numeric>

#include "normalise/normalise.h"
#include "normalise/trial.h"

namespace tosaic {

void drop_identities(Graph& graph) {
  std::vector<ValueId> same_as(graph.values.size());
  std::iota(same_as.begin(), same_as.end(), 0);
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) {
    for (ValueId& v : node.inputs)
      if (v != no_value) v = same_as[v];
    if (node.outputs.empty()) continue;
    // Cheap conditions first: an identity has one result, of the type of its first operand.
    bool candidate = node.outputs.size() == 1 && node.outputs[0] != no_value && !node.inputs.empty() && node.inputs[0] != no_value;
    if (candidate) {
      const TensorType &in = graph[node.inputs[0]].type, &out = graph[node.outputs[0]].type;
      FoundOp found = find_aten(node.op);
      candidate = in.dtype == out.dtype && in.shape.dims() == out.shape.dims() && found.op &&
                  (found.op->rule == Rule::transparent || found.op->rule == Rule::index);
    }
    if (candidate)
      if (auto trial = try_node(graph, node, false); trial.ok() && trial->results[0] == trial->operands[0]) {
        same_as[node.outputs[0]] = node.inputs[0];
        continue;
      }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  for (ValueId& v : graph.outputs) v = same_as[v];
  drop_dead(graph);
}

}  // namespace tosaic
