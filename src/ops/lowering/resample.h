// SPDX-License-Identifier: Apache-2.0
// PyTorch's upsampling of images (which may shrink, too), shared by the upsample operators under aten/.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

enum class Sampling { nearest, nearest_exact, bilinear };

// One spatial dim: sizes, and the step between sample points that PyTorch computes: input size / output size, or
// 1 / scale_factor when the factor was given.
struct Resampled {
  std::int64_t in, out;
  double step;
};

// The output dims and steps from output_size, scale_factors or scales_*, for the `spatial` last dims of the input.
std::vector<Resampled> resampled_dims(Builder& b, const Call& call, Val x, int spatial);

// x: N,C,H,W, dims {H, W}; the result is N,C,H',W'.
Val resample(Builder& b, const std::string& op, Val x, const std::vector<Resampled>& dims, Sampling sampling,
             bool align_corners);

// The whole lowering of upsample_*1d and *2d.
Vals lower_upsample(Builder& b, const Call& call, int spatial, Sampling sampling);

}  // namespace tosaic
