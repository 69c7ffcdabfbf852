// SPDX-License-Identifier: Apache-2.0
#include "plan/uses.h"

#include <algorithm>

namespace tosaic::plan {

Uses::Uses(const Graph& g, std::span<const ValueId> observed)
    : graph(g), producer(producers(g)), users(consumers(g)), visible(g.values.size(), false) {
  for (ValueId v : graph.outputs) visible[v] = true;
  for (ValueId v : observed)
    if (v < graph.values.size()) visible[v] = true;
}

bool Uses::only_first_computed(const Node& node) const {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId v) { return constant(v); });
}

std::optional<std::uint32_t> Uses::only_user(ValueId value) const {
  if (visible[value] || users[value].size() != 1) return std::nullopt;
  return users[value].front();
}

}  // namespace tosaic::plan
