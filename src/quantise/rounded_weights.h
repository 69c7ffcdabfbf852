// SPDX-License-Identifier: Apache-2.0
// The program's weights, rounded by least squares on what the samples multiply them with (quantise/least_squares.h).
#pragma once
#include <map>

#include "quantise/layer_rows.h"
#include "quantise/plan.h"

namespace tosaic {

// What stands in place of `quantise_one`'s quantised values, whose types they have: a scale for all of a weight, for
// each of its channels, or for as many groups of neighbours in each channel.
using RoundedWeights = std::map<WeightKey, Tensor>;
RoundedWeights round_weights(const Graph& graph, LayerRows rows, const QuantiseWeight& quantise_one, int threads);

}  // namespace tosaic
