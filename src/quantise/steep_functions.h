// SPDX-License-Identifier: Apache-2.0
// Functions that are steep where many elements of their operand lie: the square root of a sum of squares, a logarithm
// of an energy. One step of 8 bits there is many of the result's. Their operand gets 16 bits, and so does what is added
// up to it: squares of 8-bit values are whole numbers that 16 bits hold.
#pragma once
#include <map>

#include "quantise/plan.h"

namespace tosaic {

// On the ranges of groups as the samples show them, and the histograms of those that have one. Only where
// `plan.may_widen` says so. `float_ends`: what enters and leaves the program are floats, so that a state, which does
// both, may have them as well.
void widen_steep_operands(const Graph& graph, const std::map<ValueId, Range>& ranges,
                          const std::map<ValueId, Histogram>& histograms, bool float_ends, QuantisationPlan& plan);

}  // namespace tosaic
