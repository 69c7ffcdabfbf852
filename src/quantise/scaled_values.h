// SPDX-License-Identifier: Apache-2.0
// Products by a positive number (the scale of attention, for one) keep their operand's quantised values: their scale is
// the operand's, times the number. No arithmetic is left and nothing is rounded. A finer scale of the result's own
// would take both and know nothing more of values that are quantised already.
#pragma once
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

// A group of the plan whose scale is that of `of` times `by`, in the nodes' order. Results that share their scale with
// something else, or that are given out, keep theirs.
struct ScaledGroup {
  ValueId group, of;
  double by;
};
std::vector<ScaledGroup> scaled_groups(const Graph& graph, const QuantisationPlan& plan);

// After types were given.
void keep_scaled_values(Graph& graph, const QuantisationPlan& plan);

}  // namespace tosaic
