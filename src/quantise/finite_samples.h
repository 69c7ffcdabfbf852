// SPDX-License-Identifier: Apache-2.0
// Samples with NaN or infinities. A program may well replace them (nan_to_num, a mask that is -inf), so what it makes
// of such a sample decides.
#pragma once
#include <span>
#include <vector>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

// `graph` is a program in floats, which runs on the samples that have some. Error calibrate.not-a-number: NaN in one
// makes results NaN or infinite, or infinities in it make them NaN.
Status finite_samples(const Graph& graph, std::span<const std::vector<Tensor>> samples, int threads);

}  // namespace tosaic
