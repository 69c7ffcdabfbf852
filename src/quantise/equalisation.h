// SPDX-License-Identifier: Apache-2.0
// Equalisation: a tensor of integers has one scale, so channels that are small next to others keep few of its steps.
// Where the layer that makes a channel can make it larger, and those that read it take that back in their weights, the
// floats are the same and the integers finer. (Nagel et al., "Data-Free Quantization Through Weight Equalization and
// Bias Correction", ICCV 2019, section 4.1. There factors follow from the ranges of weights; here from what rounding
// the activations and the weights costs on the samples.) Factors are powers of two, so that floats do not change in the
// last bit; but what exceeds the samples meets the bound of a clamp earlier.
#pragma once
#include <vector>

#include "quantise/quantise.h"

namespace tosaic {

// Changes weights and biases of `graph`, whose states are tensors, its composites expanded. `inner`: as in Expanded.
Status equalise(Graph& graph, const std::vector<char>& inner, const std::vector<std::vector<Tensor>>& samples,
                const QuantiseOptions& options);

}  // namespace tosaic
