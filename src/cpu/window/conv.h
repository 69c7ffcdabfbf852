// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products: each block of rows is gathered from the input (or is the input itself), meets
// the packed weights, and is finished by its epilogue. conv_lines reads rows where they lie, in lines of the input with
// zeros at their ends: a row is one segment of each line that its window reaches, and overlaps its neighbours.
#pragma once
#include "cpu/matrix/gemm_f32.h"
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_conv_lines(Planning& planning, std::uint32_t node);
bool take_conv_f32(Planning& planning, std::uint32_t node);
bool take_conv_i8(Planning& planning, std::uint32_t node);
bool take_conv_i16(Planning& planning, std::uint32_t node);

// Weights and bias of a convolution of floats, both constant, in panels: k products in each sum.
void pack_convolution(const Planning& planning, const Node& node, std::int64_t k, PackedF32& packed);
}  // namespace tosaic::cpu
