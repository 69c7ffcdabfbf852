// SPDX-License-Identifier: Apache-2.0
#include "compare/narrow_floats.h"

#include <utility>

#include "ir/tensor.h"
#include "ir/tosa_operators.h"

namespace tosaic {

Graph rounded_as_kept(Graph graph, const Graph& kept) {
  const auto rounds = [&](ValueId v) { return v < kept.values.size() && kept[v].type.dtype != graph[v].type.dtype; };
  for (ValueId v = 0; v < kept.values.size(); ++v)
    if (graph[v].is_constant() && rounds(v))
      graph[v].constant = converted({kept[v].type, kept[v].constant.data()}, graph[v].type.dtype);
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    std::vector<std::pair<ValueId, ValueId>> rounded;  // as it is computed, and what others read
    for (ValueId& v : node.outputs) {
      if (v == no_value || !rounds(v)) continue;
      const ValueId exact = graph.add_value(graph[v].name + ".exact", graph[v].type);
      rounded.emplace_back(exact, std::exchange(v, exact));
    }
    const LocRef loc = node.loc;
    nodes.push_back(std::move(node));
    for (const auto& [exact, v] : rounded) {
      const ValueId narrow = graph.add_value(graph[v].name + ".kept", graph[v].type.with(kept[v].type.dtype));
      nodes.push_back({tosa::op::cast, {exact}, {}, {narrow}, loc, {}});
      nodes.push_back({tosa::op::cast, {narrow}, {}, {v}, loc, {}});
    }
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace tosaic
