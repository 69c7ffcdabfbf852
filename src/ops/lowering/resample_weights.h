// SPDX-License-Identifier: Apache-2.0
// Resampling one dim as a matrix of weights, for filters that RESIZE does not have (bicubic, antialiased).
#pragma once
#include <vector>

#include "ops/lowering/resample.h"

namespace tosaic {

enum class Filter { linear, cubic };

// Row o: the weights of the input's elements in output o, [out, in] row-major, as PyTorch takes them.
std::vector<double> cubic_weights(const Resampled& dim, bool align_corners);
// The filter widened by the step when the image shrinks, its weights brought to a sum of 1.
std::vector<double> antialiased_weights(const Resampled& dim, Filter filter);

// The whole lowering of an operator that resamples images so.
Vals lower_weighted_upsample(Builder& b, const Call& call, Filter filter, bool antialias);

}  // namespace tosaic
