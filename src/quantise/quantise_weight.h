// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/tensor.h"

namespace tosaic {

// A float weight as int8 quantised values, symmetric in [-127, 127]; axis -1: one scale. A channel whose weights are
// whole multiples of one unit (those of a mean, of a centring) keeps them exactly. `four_bits`: in [-7, 7], each scale
// the bfloat16 with the least squared error, for with so few quantised values it pays to let the largest weights
// saturate.
Tensor quantise_weight(const Tensor& weight, int axis, bool four_bits = false);

// A constant together with a tensor of 16 bits in a product of two matrices: symmetric int16 quantised values with one
// scale.
Tensor quantise_matrix_to_int16(const Tensor& matrix);

}  // namespace tosaic
