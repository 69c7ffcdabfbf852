// SPDX-License-Identifier: Apache-2.0
// The inner loops of convolutions: 16-bit inputs (zero point taken off) times 9-bit weights in 16 bits, into 32-bit
// sums. Who calls sees to it that the sums fit. Chosen per instruction set at run time.
#pragma once
#include <cstdint>
#include <vector>

#include "ethosu/weight_order.h"

namespace tosaic::ethosu {

constexpr std::int64_t block_outputs = 16;  // output channels that one call computes
constexpr int most_pixels = 8;              // pixels that one call computes

// [block of outputs][tap][pair of inputs][16 outputs][2]; inputs rounded up to pairs, outputs to blocks, with zeros.
std::vector<std::int16_t> pack_dense(const Weights& weights);
// [tap][channel rounded up to 16]
std::vector<std::int16_t> pack_depthwise(const Weights& weights);

// A stretch of the input that is consecutive in memory: where it starts relative to the pixel, and pairs.
struct Stretch {
  std::int64_t offset, pairs;
};
struct DenseCall {
  const std::int16_t* pixels[most_pixels];
  int count;
  const Stretch* stretches;
  std::int64_t stretch_count;
  const std::int16_t* weights;  // where this block's first stretch starts
  std::int32_t* sums;           // [count][stride], 16 used
  std::int64_t stride;
};
void dense_block(const DenseCall& call);

struct DepthwiseCall {
  const std::int16_t* pixel;
  const std::int64_t* tap_offsets;
  std::int64_t taps, channels;  // channels: a multiple of 16, readable at every tap
  const std::int16_t* weights;
  std::int32_t* sums;  // [channels]
};
void depthwise_pixel(const DepthwiseCall& call);

}  // namespace tosaic::ethosu
