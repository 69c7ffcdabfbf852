// SPDX-License-Identifier: Apache-2.0
#include "ir/lines_about.h"

#include <algorithm>
#include <iterator>

namespace tosaic {
namespace {

bool is_about(const Graph& graph, const Node& node, std::string_view name) {
  const bool gives =
      std::ranges::any_of(node.outputs, [&](ValueId v) { return v != no_value && graph[v].name == name; });
  const bool stands_for = node.loc && (node.loc->name == name || std::ranges::count(node.loc->also, name) > 0);
  return gives || stands_for;
}

}  // namespace

std::vector<std::string> lines_about(const Graph& graph, std::string_view name) {
  std::vector<std::string> lines;
  for (ValueId v : graph.inputs)
    if (graph[v].name == name) lines.push_back(line_of(graph, v) + " = input");
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].is_constant() && graph[v].name == name) lines.push_back(line_of(graph, v));
  for (const Node& node : graph.nodes) {
    if (is_about(graph, node, name)) lines.push_back(line_of(graph, node));
    for (const Graph& body : node.regions) std::ranges::move(lines_about(body, name), std::back_inserter(lines));
  }
  return lines;
}

}  // namespace tosaic
