// SPDX-License-Identifier: Apache-2.0
#include "plan/constant_graph.h"

#include <map>
#include <set>

namespace tosaic::plan {

Graph constant_graph(const Graph& graph, std::span<const std::int32_t> producer, ValueId value) {
  std::vector<const Node*> needed;
  std::set<ValueId> wanted{value};
  for (std::size_t n = static_cast<std::size_t>(producer[value]) + 1; n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (node.outputs.size() != 1 || !wanted.contains(node.outputs[0]) || graph[node.outputs[0]].is_constant()) continue;
    needed.push_back(&node);
    wanted.insert(node.inputs.begin(), node.inputs.end());
  }
  Graph alone;
  alone.name = graph.name;
  std::map<ValueId, ValueId> here;
  for (ValueId v : wanted) here[v] = alone.add_value(graph[v].name, graph[v].type, graph[v].constant);
  for (auto it = needed.rbegin(); it != needed.rend(); ++it) {
    Node& node = alone.nodes.emplace_back(**it);
    for (auto* values : {&node.inputs, &node.outputs})
      for (ValueId& v : *values) v = here.at(v);
  }
  alone.outputs = {here.at(value)};
  return alone;
}

}  // namespace tosaic::plan
