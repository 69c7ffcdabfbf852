// SPDX-License-Identifier: Apache-2.0
// reshape(reshape(x)) is one reshape of x.
#include "tidy/tidy.h"

#include "ir/tosa_operators.h"

namespace tosaic {

bool merge_reshapes(Graph& graph) {
  auto made_by = producers(graph);
  bool changed = false;
  for (Node& node : graph.nodes) {
    if (node.op != tosa::op::reshape) continue;
    std::int32_t p = made_by[node.inputs[0]];
    if (p < 0 || graph.nodes[static_cast<std::size_t>(p)].op != tosa::op::reshape) continue;
    node.inputs[0] = graph.nodes[static_cast<std::size_t>(p)].inputs[0];
    changed = true;
  }
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
