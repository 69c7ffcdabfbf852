// SPDX-License-Identifier: Apache-2.0
#include "partition/verdict.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_map>

namespace tosaic {
namespace {

// Between float and integers, or int64 and int32, around a delegate: put there for the node, no part of it.
bool is_boundary(const Node& node, const Placement& placement) {
  const bool own = node.loc && node.loc->op == node.op.name();
  return (placement.region < 0 && placement.reason.code == "target.conversion") || (!own && node.op.is_conversion());
}

void add_node(Verdict& verdict, const Placement& placement) {
  ++verdict.pieces;
  if (placement.region >= 0) {
    const auto at = std::lower_bound(verdict.delegates.begin(), verdict.delegates.end(), placement.region);
    if (at == verdict.delegates.end() || *at != placement.region) verdict.delegates.insert(at, placement.region);
  } else if (verdict.taken) {
    verdict.taken = false;
    verdict.reason = placement.reason;
  }
}

}  // namespace

std::vector<Verdict> verdicts(const std::vector<ExportedNode>& exported, const Graph& graph,
                              const std::vector<Placement>& placements) {
  std::vector<Verdict> list;
  std::unordered_map<std::string_view, std::size_t> rows;
  for (const ExportedNode& node : exported) {
    rows.try_emplace(node.name, list.size());
    list.push_back({node});
  }
  const auto each_row = [&](const Node& node, const auto& f) {
    if (!node.loc) return;
    for (std::string_view name : exported_names(*node.loc))
      if (auto it = rows.find(name); it != rows.end()) f(list[it->second]);
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (!is_boundary(graph.nodes[n], placements[n]))
      each_row(graph.nodes[n], [&](Verdict& verdict) { add_node(verdict, placements[n]); });
  // A conversion that the user wrote is one, whatever stands around it.
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (is_boundary(graph.nodes[n], placements[n]))
      each_row(graph.nodes[n], [&](Verdict& verdict) {
        if (verdict.pieces == 0 && verdict.node.op == graph.nodes[n].op.name()) add_node(verdict, placements[n]);
      });
  return list;
}

}  // namespace tosaic
