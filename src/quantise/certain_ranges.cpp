// SPDX-License-Identifier: Apache-2.0
#include "quantise/certain_ranges.h"

#include <algorithm>

namespace tosaic {

std::set<ValueId> closed_groups(const CertainRanges& certain, const QuantisationPlan& plan) {
  std::set<ValueId> closed;
  for (const auto& [v, range] : certain)
    if (range.closed && plan.range_counts(v)) closed.insert(plan.group[v]);
  return closed;
}

std::set<ValueId> include_certain(const CertainRanges& certain, const QuantisationPlan& plan,
                                  std::map<ValueId, Range>& group_ranges) {
  for (const ValueId g : closed_groups(certain, plan)) group_ranges[g] = {};
  std::set<ValueId> groups;
  for (const auto& [v, range] : certain) {
    if (!plan.range_counts(v)) continue;
    groups.insert(plan.group[v]);
    Range& seen = group_ranges[plan.group[v]];
    const double most = range.most * std::max(-seen.lowest, seen.highest);
    seen.include(Range{std::max(range.lowest, -most), std::min(range.highest, most)});
  }
  return groups;
}

}  // namespace tosaic
