// SPDX-License-Identifier: Apache-2.0
#include "lower/separated.h"

#include <fmt/format.h>
#include <map>
#include <set>
#include <string>

namespace tosaic {

Graph separated(const Graph& graph) {
  Graph made;
  made.name = graph.name;
  made.states = graph.states;
  std::map<ValueId, ValueId> known;
  std::set<std::string> names;
  const auto copy = [&](ValueId v, bool shared) {
    if (v == no_value) return v;
    if (const auto found = known.find(v); shared && found != known.end()) return found->second;
    const ValueId to = made.add_value(graph[v].name, graph[v].type, graph[v].constant);
    made[to].size = graph[v].size;
    if (!names.insert(made[to].name).second) names.insert(made[to].name = fmt::format("{}_{}", graph[v].name, to));
    if (shared) known.emplace(v, to);
    return to;
  };
  for (ValueId v : graph.inputs) made.inputs.push_back(copy(v, true));
  for (const Node& node : graph.nodes) {
    Node& to = made.nodes.emplace_back(node);
    for (ValueId& v : to.inputs) v = copy(v, v == no_value || !graph[v].is_constant());
    for (ValueId& v : to.outputs) v = copy(v, true);
  }
  for (ValueId v : graph.outputs) made.outputs.push_back(copy(v, true));
  for (State& s : made.states) {
    s.input = copy(s.input, true);
    s.output = copy(s.output, true);
  }
  return made;
}

}  // namespace tosaic
