// SPDX-License-Identifier: Apache-2.0
#include "pack/tosa_in_aten.h"

#include <algorithm>

#include "lower/lower_node.h"
#include "ops/definitions/core_aten.h"
#include "ops/trial.h"

namespace tosaic::packing {

std::optional<std::vector<Node>> tosa_in_aten(Graph& graph, const Node& node, const std::vector<char>& used) {
  for (ValueId v : node.inputs)
    if (v != no_value && !graph[v].type.shape.is_static()) return std::nullopt;
  Node read = node;
  for (ValueId& v : read.outputs)
    if (v != no_value && !used[v]) v = no_value;
  const auto trial = try_node(graph, read, {.fold = true, .lowering = lower_node});
  if (!trial.ok()) return std::nullopt;
  const ValueId first = *std::ranges::find_if(read.outputs, [](ValueId v) { return v != no_value; });
  tosa::CoreAten core(graph, trial->graph, graph[first].name, read.loc);
  for (std::size_t i = 0; i < read.inputs.size(); ++i)
    if (const ValueId v = trial->operands[i]; v != no_value && !trial->graph[v].is_constant())
      core.stands_for(v, read.inputs[i]);
  if (!std::ranges::all_of(trial->graph.nodes, [&](const Node& made) { return core.add(made); })) return std::nullopt;
  for (std::size_t i = 0; i < read.outputs.size(); ++i) {
    if (read.outputs[i] == no_value) continue;
    if (i >= trial->results.size()) return std::nullopt;
    // Each result is the last call's under the program's own name.
    core.add(aten::op::clone, {core.value(trial->results[i])}, {}, read.outputs[i]);
  }
  return std::move(core.calls);
}

}  // namespace tosaic::packing
