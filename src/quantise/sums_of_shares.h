// SPDX-License-Identifier: Apache-2.0
// Sums of exponentials, as softmax, log_softmax, logsumexp and attention have them inside. Over exp(x - max(x)) of C
// elements they lie between 1 and C whatever x is, and where in between follows from how flat x is: samples say nothing
// about rows that are flatter. Quantised values that hold C are coarse at 1, and a table of 1/x or log(x) has no knots
// there, so that functions of the sum are computed in parts (function_in_parts.h).
#pragma once
#include <vector>

#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {

// `inner` grows with the graph's values, and `certain` receives the ranges of those that have been made.
void hold_sums_of_shares(Graph& graph, std::vector<char>& inner, CertainRanges& certain,
                         const QuantiseOptions& options);

}  // namespace tosaic
