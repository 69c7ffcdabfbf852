// SPDX-License-Identifier: Apache-2.0
// A call whose lowering hands back its operand does nothing (dropout in eval, detach, contiguous, to() of the same
// dtype, reshape to the same shape); one that looks at its operand's shape only is a constant (ones_like); a call
// without results only asserts. All go.
#include <numeric>

#include "normalise/normalise.h"
#include "ops/trial.h"

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
    FoundOp found = find_aten(node.op);
    if (found.op && node.outputs.size() == 1 && node.outputs[0] != no_value &&
        (found.rule == Rule::transparent || found.rule == Rule::index)) {
      auto trial = try_node(graph, node);
      // What contradicts the program stays, and is said where it is lowered.
      const bool agrees = trial.ok() && !trial->results.empty() &&
                          trial->graph[trial->results[0]].type.shape == graph[node.outputs[0]].type.shape;
      if (agrees && !trial->operands.empty() && trial->results[0] == trial->operands[0]) {
        same_as[node.outputs[0]] = node.inputs[0];
        continue;
      }
      if (agrees && trial->graph[trial->results[0]].is_constant()) {
        graph[node.outputs[0]].constant = trial->graph[trial->results[0]].constant;
        graph[node.outputs[0]].type = trial->graph[trial->results[0]].type;
        continue;
      }
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  for (ValueId& v : graph.outputs) v = same_as[v];
  drop_dead(graph);
}

}  // namespace tosaic
