// SPDX-License-Identifier: Apache-2.0
#include "partition/partition.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "lower/lower.h"

namespace tosaic {
namespace {

// What the answer depends on: the call, its types, which operands are constant and which results are read.
std::string question(const Graph& graph, const Node& node, const std::vector<char>& used) {
  Graph one;
  Node copy = node;
  copy.loc = nullptr;
  auto take = [&](ValueId& v) {
    if (v == no_value) return;
    TensorType type = graph[v].type;
    const char* kind = graph[v].is_constant() ? "c" : used[v] ? "v" : "u";
    v = one.add_value(fmt::format("{}{}", kind, one.values.size()), type);
  };
  for (ValueId& v : copy.inputs) take(v);
  for (ValueId& v : copy.outputs) take(v);
  std::string key = node.op;
  for (const Value& v : one.values) key += " " + v.name + ":" + to_string(v.type);
  one.nodes.push_back(std::move(copy));
  return key + print(one);
}

// PyTorch names sizes that follow from the model's inputs s0, s1, ..., those that only values tell u0, u1, ...
bool only_values_tell(const std::string& size) {
  for (std::size_t i = 0; i + 1 < size.size(); ++i)
    if (size[i] == 'u' && std::isdigit(static_cast<unsigned char>(size[i + 1])) &&
        (i == 0 || (!std::isalnum(static_cast<unsigned char>(size[i - 1])) && size[i - 1] != '_')))
      return true;
  return false;
}

// A delegate computes tensors of one size, so it would take what lies behind the values for values.
Status sizes_known(const Graph& graph, const Node& node) {
  const auto check = [&](ValueId v) -> Status {
    if (v == no_value) return {};
    const Shape& shape = graph[v].type.shape;
    for (int d = 0; d < shape.rank(); ++d)
      if (const SymbolicDim* symbol = shape.symbol(d); symbol && only_values_tell(symbol->expression))
        return error("target.data-dependent", fmt::format("how large '{}' is depends on values (it is {})",
                                                          graph[v].name, to_string(graph[v].type)));
    return {};
  };
  for (ValueId v : node.inputs) TOSAIC_CHECK(check(v));
  for (ValueId v : node.outputs) TOSAIC_CHECK(check(v));
  return {};
}

std::vector<Placement> place(const Graph& graph, const tosa::Spec& spec) {
  std::unordered_map<std::string, Status> answers;
  const std::vector<char> used = used_values(graph);
  std::vector<Placement> placements(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    auto [it, fresh] = answers.try_emplace(question(graph, node, used));
    if (fresh) {
      it->second = can_lower(graph, node, used, spec);
      if (it->second.ok()) it->second = sizes_known(graph, node);
      // What stays behind is a kernel's business, but it has to be the call that the program says.
      if (!it->second.ok())
        if (Status sound = shapes_agree(graph, node); !sound.ok()) it->second = std::move(sound);
    }
    if (it->second.ok()) {
      placements[n].region = 0;
    } else {
      placements[n].reason = it->second.error();
      placements[n].reason.place = {};
      placements[n].reason.context.clear();
      placements[n].reason = located(std::move(placements[n].reason), node.loc);
    }
  }
  return placements;
}

// Even levels hold nodes that stay, odd ones delegated nodes; along any path levels never fall. So all
// delegated nodes of one level form a convex region.
std::vector<int> levels(const Graph& graph, const std::vector<Placement>& placements) {
  std::vector<int> level(graph.nodes.size(), 0);
  auto made_by = producers(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    int parity = placements[n].region >= 0 ? 1 : 0;
    int needed = parity;
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value && made_by[v] >= 0) {
        int before = level[static_cast<std::size_t>(made_by[v])];
        needed = std::max(needed, before % 2 == parity ? before : before + 1);
      }
    level[n] = needed;
  }
  return level;
}

Graph region_graph(const Graph& graph, const std::vector<std::size_t>& members, const std::vector<char>& needed_outside,
                   std::vector<ValueId>& inputs, std::vector<ValueId>& outputs) {
  Graph region;
  region.name = graph.name;
  std::map<ValueId, ValueId> inside;
  for (std::size_t n : members) {
    Node node = graph.nodes[n];
    for (ValueId& v : node.inputs) {
      if (v == no_value) continue;
      auto [it, fresh] = inside.try_emplace(v, no_value);
      if (fresh) {
        it->second = region.add_value(graph[v].name, graph[v].type, graph[v].constant);
        if (!graph[v].is_constant()) {
          region.inputs.push_back(it->second);
          inputs.push_back(v);
        }
      }
      v = it->second;
    }
    for (ValueId& v : node.outputs) {
      if (v == no_value) continue;
      ValueId made = region.add_value(graph[v].name, graph[v].type);
      inside[v] = made;
      if (needed_outside[v]) {
        region.outputs.push_back(made);
        outputs.push_back(v);
      }
      v = made;
    }
    region.nodes.push_back(std::move(node));
  }
  return region;
}

}  // namespace

Partition partition(const Graph& graph, const tosa::Spec& spec) {
  Partition result;
  result.placements = place(graph, spec);
  auto level = levels(graph, result.placements);

  // Regions are numbered by level; which values leave theirs?
  std::map<int, std::vector<std::size_t>> by_level;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) by_level[level[n]].push_back(n);
  auto made_by = producers(graph);
  std::vector<char> leaves(graph.values.size(), 0);
  for (ValueId v : graph.outputs) leaves[v] = 1;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value && made_by[v] >= 0 && level[static_cast<std::size_t>(made_by[v])] != level[n]) leaves[v] = 1;

  result.outer = graph;
  result.outer.nodes.clear();
  for (const auto& [l, members] : by_level) {
    if (l % 2 == 0) {
      for (std::size_t n : members) result.outer.nodes.push_back(graph.nodes[n]);
      continue;
    }
    const int k = static_cast<int>(result.regions.size());
    Node call;
    call.op = "delegate";
    call.attrs.set("region", std::int64_t{k});
    result.regions.push_back(region_graph(graph, members, leaves, call.inputs, call.outputs));
    for (std::size_t n : members) result.placements[n].region = k;
    result.outer.nodes.push_back(std::move(call));
  }
  drop_dead(result.outer);
  return result;
}

}  // namespace tosaic
