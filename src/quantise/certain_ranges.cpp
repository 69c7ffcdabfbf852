// SPDX-License-Identifier: Apache-2.0
#include "quantise/certain_ranges.h"

#include <algorithm>

namespace tosaic {

std::set<ValueId> closed_groups(const CertainRanges& certain, const QuantisationPlan& plan) {
  std::set<ValueId> closed;
  for (const auto& [v, range] : certain)
    if (range.closed && plan.quantised[v] && !plan.hidden[v]) closed.insert(plan.group[v]);
  return closed;
}

void include_certain(const CertainRange& certain, Range& seen) {
  const double most = certain.most * std::max(-seen.lowest, seen.highest);
  seen.include(Range{std::max(certain.lowest, -most), std::min(certain.highest, most)});
}

}  // namespace tosaic
