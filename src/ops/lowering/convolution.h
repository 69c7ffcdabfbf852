// SPDX-License-Identifier: Apache-2.0
// Convolution in PyTorch's terms for 1, 2 and 3 spatial dims, shared by conv1d/2d/3d, conv_transpose* and convolution.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

struct Convolution {
  std::vector<std::int64_t> stride, pad_before, pad_after, dilation;  // one per spatial dim
  std::int64_t groups = 1;
  std::vector<std::int64_t> output_padding;  // transposed convolution only
};

// x: N,C,spatial (or without N); weight: OC,IC/groups,spatial; bias: OC.
Val convolve(Builder& b, const std::string& op, Val x, Val weight, std::optional<Val> bias, Convolution how);
// weight: IC,OC/groups,spatial. pad_before and pad_after are PyTorch's `padding`: taken off the output.
Val convolve_transposed(Builder& b, const std::string& op, Val x, Val weight, std::optional<Val> bias, Convolution how);

// The whole lowering of conv<N>d: numbers or "same"/"valid" padding.
Vals lower_convolution(Builder& b, const Call& call, int spatial);
// The whole lowering of conv_transpose<N>d.
Vals lower_transposed_convolution(Builder& b, const Call& call, int spatial);

// The core form of both: aten.convolution. None without a batch dim, and where "same" pads the sides unlike.
std::optional<Node> core_convolution(const CoreCall& call);

}  // namespace tosaic
