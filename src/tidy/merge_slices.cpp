// SPDX-License-Identifier: Apache-2.0
// slice(slice(x)) is one slice: starts add up.
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {

bool merge_slices(Graph& graph) {
  const auto made_by = producers(graph);
  bool changed = false;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::int32_t p = graph.nodes[n].op == tosa::op::slice ? made_by[graph.nodes[n].inputs[0]] : -1;
    if (p < 0 || graph.nodes[static_cast<std::size_t>(p)].op != tosa::op::slice) continue;
    const Node& inner = graph.nodes[static_cast<std::size_t>(p)];
    auto starts = tosa::View(graph, graph.nodes[n]).constant_integers(1);
    const auto before = tosa::View(graph, inner).constant_integers(1);
    if (!starts || !before) continue;
    for (std::size_t d = 0; d < starts->size(); ++d) (*starts)[d] += (*before)[d];
    const ValueId x = inner.inputs[0], old = graph.nodes[n].inputs[1];
    const TensorType type = graph[old].type;
    const ValueId start = graph.add_value(graph[old].name, type, constant_bytes(type.dtype, *starts));
    graph.nodes[n].inputs[0] = x;
    graph.nodes[n].inputs[1] = start;
    changed = true;
  }
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
