// SPDX-License-Identifier: Apache-2.0
// Samples that are not what the program was trained on: the first batch norms after its inputs see other means and
// variances than they did then. Pixels of 0..255 where it expects about N(0, 1) are the usual case.
#pragma once
#include <span>
#include <vector>

#include "base/diagnostic.h"
#include "ir/tensor.h"
#include "quantise/trained_norms.h"

namespace tosaic {

// `graph` is the program in floats. Runs what it computes as far as those norms, on some of the samples. Warning
// calibrate.normalisation.
void say_unlike_training(const Graph& graph, const std::vector<TrainedNorm>& norms,
                         std::span<const std::vector<Tensor>> samples, int threads, const Sink& sink);

}  // namespace tosaic
