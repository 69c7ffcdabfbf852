// SPDX-License-Identifier: Apache-2.0
// Integer weights as ExecuTorch's Vulkan flow packs them: constants, made floats while the program is lowered.
#pragma once
#include "ops/builder.h"

namespace tosaic {

// Element i of a constant, as a number.
std::vector<double> elements_of(Val constant);

// 4-bit quantised values with 8 added, two in a byte along the last dim, times scales: rows x columns of `dtype`.
struct FourBits {
  std::int64_t columns = 0;
  bool even_is_low = true;  // which half of a byte the even columns are in
  std::int64_t group = 0;   // columns that share a scale
  // The scale of row r and group g, among the elements of `scales`.
  std::int64_t row_stride = 0, group_stride = 0;
};
Val four_bit_weight(Val packed, Val scales, DType dtype, const FourBits& how);

// 8-bit quantised values, one scale for each index along the first dim of `quantised`; there may be more scales than
// that.
Val eight_bit_weight(Val quantised, Val scales);

// Quantised and dequantised: what a float tensor is to an operator that computes with integers.
Val through_quantised(Val x, double scale, std::int64_t zero_point);

}  // namespace tosaic
