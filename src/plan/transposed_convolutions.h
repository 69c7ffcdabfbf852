// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions as plain ones, for executors whose kernels are for those. With strides of s rows and columns
// the result is s * s interleaved images, its phases: each a plain convolution with the taps that fall on it. All
// phases are channels of one image first, from which the result's pixels are gathered.
#pragma once
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// What has sizes or weights that are not known stays. `observed`: values that stay. Values keep their numbers.
void transposed_as_convolutions(Graph& graph, std::span<const ValueId> observed = {});

}  // namespace tosaic::plan
