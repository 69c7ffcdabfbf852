// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products: each block of rows is gathered from the input (or is the input itself), meets
// the packed weights, and is finished by its epilogue. conv_lines reads rows where they lie, in lines of the input with
// zeros at their ends: a row is one segment of each line that its window reaches, and overlaps its neighbours. Groups
// of channels (tosaic.grouped_conv2d) are as many products, one after the other, read and written among the others'
// channels.
#pragma once
#include "cpu/matrix/gemm_f32.h"
#include "cpu/step.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
bool take_conv_lines(Planning& planning, std::uint32_t node);
bool take_conv_f32(Planning& planning, std::uint32_t node);
bool take_conv_lines_i8(Planning& planning, std::uint32_t node);
bool take_conv_i8(Planning& planning, std::uint32_t node);
bool take_conv_i16(Planning& planning, std::uint32_t node);

// The ways of take_conv_i16 besides patches of i16: false, another must.
bool take_conv_tiles_i16(Planning& planning, std::uint32_t node, const Window& window);
bool take_conv_lines_i16(Planning& planning, std::uint32_t node, const Window& window);

// Weights and biases of a convolution of floats in panels, of each group of channels.
std::vector<PackedF32> pack_convolution(Planning& planning, const Node& node, const Window& window);
// Constants that were made for this node alone, of several groups, are there no more when kernels have packed them.
void give_back_joined(Planning& planning, const Node& node, const Window& window);
}  // namespace tosaic::cpu
