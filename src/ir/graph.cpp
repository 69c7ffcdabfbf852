// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tosaic {

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> list) : list_(list) {}

void Attrs::set(std::string name, Attr value) {
  for (auto& [n, a] : list_)
    if (n == name) {
      a = std::move(value);
      return;
    }
  list_.emplace_back(std::move(name), std::move(value));
}

ValueId Graph::add_value(std::string value_name, TensorType type, Bytes constant) {
  values.push_back({std::move(value_name), std::move(type), std::move(constant)});
  return static_cast<ValueId>(values.size() - 1);
}

std::vector<std::int32_t> producers(const Graph& graph) {
  std::vector<std::int32_t> result(graph.values.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].outputs)
      if (v != no_value) result[v] = static_cast<std::int32_t>(n);
  return result;
}

std::vector<std::vector<std::uint32_t>> consumers(const Graph& graph) {
  std::vector<std::vector<std::uint32_t>> result(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value && (result[v].empty() || result[v].back() != n))
        result[v].push_back(static_cast<std::uint32_t>(n));
  return result;
}

namespace {

// Values that arguments name (SymbolicArgument): most graphs have none, so their names are looked up when one is met.
class NamedValues {
 public:
  explicit NamedValues(const Graph& graph) : graph_(graph) {}
  void mark(const Node& node, std::vector<char>& needed) {
    for (const auto& named : node.attrs) {
      if (const auto* one = std::get_if<SymbolicArgument>(&named.second)) mark(*one, needed);
      if (const auto* list = std::get_if<std::vector<SymbolicArgument>>(&named.second))
        for (const SymbolicArgument& a : *list) mark(a, needed);
    }
  }

 private:
  void mark(const SymbolicArgument& argument, std::vector<char>& needed) {
    if (by_name_.empty())
      for (ValueId v = 0; v < graph_.values.size(); ++v) by_name_.emplace(graph_[v].name, v);
    if (const auto found = by_name_.find(argument.name); found != by_name_.end()) needed[found->second] = 1;
  }
  const Graph& graph_;
  std::unordered_map<std::string_view, ValueId> by_name_;
};

}  // namespace

// Which values somebody needs, of the nodes that then are left.
static std::vector<char> without_dead_nodes(Graph& graph) {
  std::vector<char> needed(graph.values.size(), 0);
  for (ValueId v : graph.outputs) needed[v] = 1;
  for (ValueId v : graph.inputs) needed[v] = 1;
  for (const State& s : graph.states) {
    if (s.input != no_value) needed[s.input] = 1;
    if (s.output != no_value) needed[s.output] = 1;
  }
  NamedValues named(graph);
  std::vector<char> alive(graph.nodes.size(), 0);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    // A node without outputs acts only by its effect (an assertion), and one that writes in place by that as well.
    alive[n] = node.outputs.empty() || name_says_in_place(node.op) ||
               std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId v) { return v != no_value && needed[v] && !graph[v].is_constant(); });
    if (!alive[n]) continue;
    named.mark(node, needed);
    for (ValueId v : node.inputs)
      if (v != no_value) needed[v] = 1;
    for (ValueId v : node.outputs)
      if (v != no_value) needed[v] = 1;
  }
  std::size_t n = 0;
  std::erase_if(graph.nodes, [&](const Node&) { return !alive[n++]; });
  return needed;
}

bool name_says_in_place(Operator op) {
  const std::string_view name = op.base();
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

void drop_dead_nodes(Graph& graph) { without_dead_nodes(graph); }

void drop_dead(Graph& graph) {
  const std::vector<char> needed = without_dead_nodes(graph);
  std::vector<ValueId> renumbered(graph.values.size(), no_value);
  ValueId next = 0;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (needed[v]) {
      renumbered[v] = next;
      if (next != v) graph.values[next] = std::move(graph.values[v]);
      ++next;
    }
  graph.values.resize(next);
  auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& v : ids)
      if (v != no_value) v = renumbered[v];
  };
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
  for (State& s : graph.states) {
    if (s.input != no_value) s.input = renumbered[s.input];
    if (s.output != no_value) s.output = renumbered[s.output];
  }
}

void make_names_unique(Graph& graph) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> next;  // the first number of a name that may be free: thousands have the same
  std::vector<char> done(graph.values.size(), 0);
  auto settle = [&](ValueId v) {
    if (v == no_value || done[v]) return;
    done[v] = 1;
    if (taken.insert(graph[v].name).second) return;
    int& n = next.try_emplace(graph[v].name, 1).first->second;
    std::string name;
    do name = graph[v].name + "_" + std::to_string(n++);
    while (!taken.insert(name).second);
    graph[v].name = std::move(name);
  };
  for (ValueId v : graph.inputs) settle(v);
  for (ValueId v : graph.outputs) settle(v);
  for (ValueId v = 0; v < graph.values.size(); ++v) settle(v);
}

}  // namespace tosaic
