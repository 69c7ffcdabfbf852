// SPDX-License-Identifier: Apache-2.0
// Pooling in PyTorch's terms, shared by the pool operators under aten/. All tensors here are N,H,W,C.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

struct Pooling {
  std::vector<std::int64_t> kernel, stride, padding, dilation;  // two numbers each
  bool ceil_mode = false;
  bool count_include_pad = true;        // average only
  std::optional<std::int64_t> divisor;  // average only
};

// kernel_size, stride (empty: the kernel's), padding, dilation and ceil_mode of a 1-D or 2-D pool; 1-D gets height 1.
Pooling pooling_of(Builder& b, const Call& call, int spatial);

// How one dim is covered: output size, and how far the last window reaches beyond the padded input (negative: elements
// at the end that no window reaches).
struct Coverage {
  std::int64_t outputs, overhang;
};
Coverage coverage(Builder& b, const std::string& op, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding, std::int64_t dilation, bool ceil_mode);

Val max_pooled(Builder& b, const std::string& op, Val nhwc, const Pooling& pooling);
Val avg_pooled(Builder& b, const std::string& op, Val nhwc, const Pooling& pooling);

// Where the largest element of each window stands, the first of equals, as PyTorch counts (row-major over the dims that
// are pooled, without padding): i32, or f32 for floats where that is exact (the floating-point profile computes with no
// integers). x: N, one to three dims, C, with as many numbers in each list of `pooling`.
Val max_indices(Builder& b, const std::string& op, Val x, const Pooling& pooling);

enum class Pool { average, maximum };
// x: N,D,H,W,C, three numbers each in `pooling`. A maximum or mean over a box is one over its height and width, then
// over its depth.
Val volume_pooled(Builder& b, const std::string& op, Val ndhwc, const Pooling& pooling, Pool kind);

// Adaptive pooling to `outputs` {height, width}: output i covers floor(i*in/out) .. ceil((i+1)*in/out).
Val adaptive_pooled(Builder& b, const std::string& op, Val nhwc, std::vector<std::int64_t> outputs, Pool kind);
// x: N,D,H,W,C to `outputs` {depth, height, width}.
Val adaptive_volume_pooled(Builder& b, const std::string& op, Val ndhwc, std::vector<std::int64_t> outputs, Pool kind);

}  // namespace tosaic
