// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/uniform_flow.h"

#include <algorithm>

namespace tosaic::spirv {

void UniformFlow::value(Id result, std::span<const Id> operands) {
  for (Id operand : operands) edges_.emplace_back(operand, result);
}

// What is stored where only some invocations come differs, whatever the value is.
void UniformFlow::store(Id variable, Id value) {
  edges_.emplace_back(value, variable);
  for (Id condition : conditions_) edges_.emplace_back(condition, variable);
}

void UniformFlow::barrier() { around_barriers_.insert(around_barriers_.end(), conditions_.begin(), conditions_.end()); }

bool UniformFlow::barriers_are_uniform(Id bound) const {
  if (around_barriers_.empty()) return true;
  std::vector<std::pair<Id, Id>> edges = edges_;
  std::ranges::sort(edges);
  std::vector<bool> varies(bound, false);
  std::vector<Id> next = varying_;
  while (!next.empty()) {
    const Id id = next.back();
    next.pop_back();
    if (varies[id]) continue;
    varies[id] = true;
    for (auto at = std::ranges::lower_bound(edges, std::pair{id, Id{0}}); at != edges.end() && at->first == id; ++at)
      if (!varies[at->second]) next.push_back(at->second);
  }
  return std::ranges::none_of(around_barriers_, [&](Id condition) { return varies[condition]; });
}

}  // namespace tosaic::spirv
