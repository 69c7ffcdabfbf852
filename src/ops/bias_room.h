// SPDX-License-Identifier: Apache-2.0
// Biases count an accumulator's steps, of which there are so many. Where a bias has more, its channel's steps grow, and
// the weights' quantised values shrink: what that costs them lies below the steps of a result that holds the bias.
#pragma once
#include <vector>

#include "ir/tensor.h"

namespace tosaic {

// By how much the steps of a weight's channels have to grow for reals as biases; all 1: nothing does. `x`: the scale
// and dtype of the activations. A weight of one scale has one factor.
std::vector<double> growth_for_biases(const Tensor& biases, double x_scale, DType x, const Scales& weight);
// The channels begin along the weight's axis; where they are more than that dim has, they lie along the next one, too.
Tensor with_larger_steps(const Tensor& weight, const std::vector<double>& growth);

}  // namespace tosaic
