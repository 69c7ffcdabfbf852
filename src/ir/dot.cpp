// SPDX-License-Identifier: Apache-2.0
#include "ir/dot.h"

#include <fmt/format.h>

namespace tosaic {
namespace {

// In Graphviz's quotes only these two have a meaning.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

class Drawing {
 public:
  void graph(const Graph& graph, const std::string& prefix, int depth) {
    const std::string margin(static_cast<std::size_t>(depth) * 2, ' ');
    std::vector<std::string> maker(graph.values.size());  // of each value: the box that an arrow begins at
    const auto box = [&](const std::string& id, std::string_view label, std::string_view look) {
      out_ += fmt::format("{}{} [label={}{}]\n", margin, quoted(id), quoted(label), look);
    };
    for (ValueId v : graph.inputs) {
      maker[v] = prefix + "%" + graph[v].name;
      box(maker[v], graph[v].name, ", shape=ellipse");
    }
    for (const State& state : graph.states) {
      maker[state.input] = prefix + "%" + graph[state.input].name;
      box(maker[state.input], state.name, ", shape=cylinder");
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const std::string id = fmt::format("{}{}", prefix, n);
      const bool named = !node.outputs.empty() && node.outputs[0] != no_value;
      box(id, (named ? graph[node.outputs[0]].name + " = " : "") + fmt::format("{}", node.op), "");
      for (ValueId v : node.inputs) arrow(graph, maker, v, id, margin);
      for (ValueId v : node.outputs)
        if (v != no_value) maker[v] = id;
      for (std::size_t k = 0; k < node.regions.size(); ++k) {
        const std::string body = fmt::format("{}.{}.", id, k);
        out_ += fmt::format("{}subgraph {} {{ label={}\n", margin, quoted("cluster" + body),
                            quoted(fmt::format("{} of {}", node.regions[k].name, node.op)));
        this->graph(node.regions[k], body, depth + 1);
        out_ += margin + "}\n";
      }
    }
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const std::string id = fmt::format("{}result {}", prefix, i);
      box(id, fmt::format("result {}", i), ", shape=ellipse");
      arrow(graph, maker, graph.outputs[i], id, margin);
    }
  }

  std::string take() { return "digraph {\n  node [shape=box, fontname=monospace]\n" + out_ + "}\n"; }

 private:
  void arrow(const Graph& graph, const std::vector<std::string>& maker, ValueId v, const std::string& to,
             const std::string& margin) {
    if (v == no_value || maker[v].empty()) return;
    out_ +=
        fmt::format("{}{} -> {} [label={}]\n", margin, quoted(maker[v]), quoted(to), quoted(to_string(graph[v].type)));
  }

  std::string out_;
};

}  // namespace

std::string dot(const Graph& graph) {
  Drawing drawing;
  drawing.graph(graph, "", 1);
  return drawing.take();
}

}  // namespace tosaic
