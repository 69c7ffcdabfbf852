// SPDX-License-Identifier: Apache-2.0
// Tensors of whole numbers: floor, round, sign, and what follows from them alone. A scale of 5 / 255 has no 3, but
// 2.996, which is 2 as an integer (the sectors of a circle of hues); one of 1 / 32 has all of them. Private to
// quantise/.
#pragma once
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

// Groups that hold nothing else.
std::vector<char> groups_of_whole_numbers(const Graph& graph, const QuantisationPlan& plan);

// The range, wide enough for each of its `steps` steps to be a power of two; as it is where they are more than 1.
Range with_whole_steps(Range range, double steps);

}  // namespace tosaic
