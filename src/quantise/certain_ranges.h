// SPDX-License-Identifier: Apache-2.0
// What mathematics says of the ranges of a plan's groups, next to what the samples show. Private to quantise/.
#pragma once
#include <map>
#include <set>

#include "quantise/plan.h"

namespace tosaic {

// Groups of which the samples say nothing: what they show beyond the certain range saturates.
std::set<ValueId> closed_groups(const CertainRanges& certain, const QuantisationPlan& plan);

// `group_ranges`: what the samples show. Returns the groups of which something is certain.
std::set<ValueId> include_certain(const CertainRanges& certain, const QuantisationPlan& plan,
                                  std::map<ValueId, Range>& group_ranges);

}  // namespace tosaic
