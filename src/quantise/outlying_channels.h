// SPDX-License-Identifier: Apache-2.0
// Tensors whose scale is that of a few elements, which their reader makes little of: one channel of a language model's
// residual stream, which the weight of the next norm suppresses; channels before a depthwise convolution, whose weights
// bring them to one size. To the reader, all others are what counts, and 8 bits leave them few steps.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "quantise/plan.h"
#include "quantise/row_norms.h"

namespace tosaic {

// Gives them 16 bits, and what they are made of. Which these are: `ranges`, of groups, as the samples show them.
// Without a histogram of its results, a depthwise convolution reads 8 bits. `float_ends` as in FinerOperands.
std::set<ValueId> widen_outlying_channels(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                          const std::map<ValueId, Histogram>& histograms,
                                          const std::vector<RowNorm>& norms, bool float_ends, QuantisationPlan& plan);

}  // namespace tosaic
