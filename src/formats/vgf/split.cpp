// SPDX-License-Identifier: Apache-2.0
#include "formats/vgf/split.h"

#include <algorithm>
#include <set>

#include "formats/vgf/shader.h"
#include "ir/tosa_operators.h"

namespace tosaic::vgf {
namespace {

constexpr std::size_t outside = static_cast<std::size_t>(-1);  // a graph input or a constant

// What leaves a segment has to be computed in one: a constant that a shader reads, and an input or a constant that is
// an output, get an IDENTITY.
Graph with_copies(const Graph& graph) {
  Graph made = graph;
  made.nodes.clear();
  auto copy = [&](ValueId v) {
    const ValueId copied = made.add_value(made[v].name, made[v].type);
    made.nodes.push_back({tosa::op::identity, {v}, {}, {copied}, nullptr, {}});
    return copied;
  };
  std::set<ValueId> computed;
  for (Node node : graph.nodes) {
    if (is_shader(node))
      for (ValueId& v : node.inputs)
        if (made[v].is_constant()) v = copy(v);
    for (ValueId v : node.outputs) computed.insert(v);
    made.nodes.push_back(std::move(node));
  }
  for (ValueId& v : made.outputs)
    if (!computed.contains(v)) v = copy(v);
  make_names_unique(made);
  return made;
}

void add_once(std::vector<ValueId>& list, ValueId v) {
  if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
}

}  // namespace

bool is_shader(const Node& node) {
  return node.op == tosa::op::custom && node.attrs.get_or<std::string>("domain_name", "") == shader_domain;
}

Parts split(const Graph& graph) {
  Parts parts;
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_shader)) {
    parts.whole = graph;
    parts.list.push_back({false, graph});
    return parts;
  }
  parts.whole = with_copies(graph);
  // Each operator goes into the first graph segment that runs after everything it reads; each shader into one of its
  // own, at the end of those there are.
  std::vector<std::size_t> part_of(parts.whole.values.size(), outside);
  std::vector<std::vector<std::size_t>> nodes;
  std::vector<bool> shader;
  for (std::size_t n = 0; n < parts.whole.nodes.size(); ++n) {
    const Node& node = parts.whole.nodes[n];
    std::size_t at = 0;
    for (ValueId v : node.inputs)
      if (part_of[v] != outside) at = std::max(at, part_of[v]);
    if (is_shader(node))
      at = nodes.size();
    else
      while (at < nodes.size() && shader[at]) ++at;
    if (at == nodes.size()) {
      nodes.emplace_back();
      shader.push_back(is_shader(node));
    }
    nodes[at].push_back(n);
    for (ValueId v : node.outputs) part_of[v] = at;
  }
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    Part part{shader[p], {}};
    part.graph.values = parts.whole.values;
    for (std::size_t n : nodes[p]) part.graph.nodes.push_back(parts.whole.nodes[n]);
    parts.list.push_back(std::move(part));
  }
  for (std::size_t p = 0; p < nodes.size(); ++p)
    for (const Node& node : parts.list[p].graph.nodes)
      for (ValueId v : node.inputs) {
        if (parts.whole[v].is_constant() || part_of[v] == p) continue;
        add_once(parts.list[p].graph.inputs, v);
        if (part_of[v] != outside) add_once(parts.list[part_of[v]].graph.outputs, v);
      }
  for (ValueId v : parts.whole.outputs) add_once(parts.list[part_of[v]].graph.outputs, v);
  // A shader's operands stand in its own order.
  for (Part& part : parts.list)
    if (part.shader) {
      part.graph.inputs = part.graph.nodes[0].inputs;
      part.graph.outputs = part.graph.nodes[0].outputs;
    }
  std::erase_if(parts.list, [](const Part& part) { return part.graph.outputs.empty(); });  // read by nobody
  return parts;
}

}  // namespace tosaic::vgf
