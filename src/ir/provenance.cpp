// SPDX-License-Identifier: Apache-2.0
#include "ir/provenance.h"

#include <fmt/format.h>
#include <algorithm>
#include <unordered_set>

#include "base/bytes.h"

namespace tosaic {

std::vector<std::string_view> exported_names(const Loc& loc) {
  std::vector<std::string_view> names;
  if (!loc.name.empty()) names.push_back(loc.name);
  names.insert(names.end(), loc.also.begin(), loc.also.end());
  return names;
}

LocRef joined(const LocRef& first, const LocRef& second) {
  if (!first || !second || first == second) return first ? first : second;
  auto loc = std::make_shared<Loc>(*first);
  for (std::string_view name : exported_names(*second)) {
    const auto known = exported_names(*loc);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (loc->name.empty())
      loc->name = name;
    else
      loc->also.emplace_back(name);
  }
  return loc;
}

std::vector<ExportedNode> exported_nodes(const Graph& program) {
  std::vector<ExportedNode> nodes;
  std::unordered_set<std::string_view> seen;  // nodes of a decomposed call have its name
  for (const Node& node : program.nodes)
    if (node.loc && !node.loc->name.empty() && seen.insert(node.loc->name).second)
      nodes.push_back({node.loc->name, node.loc->op.empty() ? node.op.text() : node.loc->op, node.loc});
  return nodes;
}

std::string fingerprint(const std::vector<ExportedNode>& nodes) {
  std::string text;
  for (const ExportedNode& node : nodes) text += fmt::format("{} {}\n", node.op, node.name);
  return fmt::format("{:016x}", hash_of(text));
}

}  // namespace tosaic
