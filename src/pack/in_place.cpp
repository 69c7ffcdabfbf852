// SPDX-License-Identifier: Apache-2.0
#include "pack/in_place.h"

#include "ir/program_operators.h"

#include <algorithm>

namespace tosaic::packing {

bool may_write_in_place(const Graph& graph, const State& state) {
  if (state.input == state.output || !(graph[state.input].type == graph[state.output].type)) return false;
  const auto has = [](const std::vector<ValueId>& list, ValueId v) { return std::ranges::find(list, v) != list.end(); };
  if (has(graph.outputs, state.input) || has(graph.outputs, state.output) || has(graph.inputs, state.output))
    return false;
  for (const State& other : graph.states)
    if (&other != &state &&
        (other.output == state.output || other.output == state.input || other.input == state.output))
      return false;
  const Node* writer = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.op.same_space(program::op::label)) return false;
    if (has(node.inputs, state.output) || (writer && has(node.inputs, state.input))) return false;
    if (!has(node.outputs, state.output)) continue;
    if (node.op != op::delegate || std::ranges::count(node.inputs, state.input) != 1) return false;
    writer = &node;
  }
  return writer != nullptr;
}

}  // namespace tosaic::packing
