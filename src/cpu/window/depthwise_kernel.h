// SPDX-License-Identifier: Apache-2.0
// Depthwise products: every channel with itself, over the taps of a window. A call computes neighbouring output
// pixels; `taps` point at the first pixel's inputs, every further pixel's are `step` elements on.
#pragma once
#include <cstdint>

#include "cpu/lines.h"

namespace tosaic::cpu {

struct DepthwiseF32Call {
  const float* const* taps;
  std::int64_t tap_count, pixels, step, channels;
  const float* weight;  // [tap][weight_stride], channels padded with zeros
  std::int64_t weight_stride;
  const float* bias;  // [weight_stride]
  float lowest, highest;
  float* out;
  std::int64_t out_step;
};

struct DepthwiseI8Call {
  const std::int8_t* const* taps;  // tap_count of them, rounded up to whole groups; spare ones count nothing
  std::int64_t tap_count, pixels, step, channels;
  const void* weight;        // see pack_depthwise
  const std::int32_t* term;  // [padded channels]: the bias and what the zero points add
  std::int64_t out_step;
  std::int32_t* sums;  // or null: rescale
  std::int8_t* out;
  const std::int32_t* multiplier;  // see RescaleColumns
  const std::int64_t *shift, *round;
  std::int32_t zero_point, lowest, highest;
};

// i16 inputs: i48 sums. The products of at most 128 taps fit i32 (2^15 * 2^8 * 2^7).
struct DepthwiseI16Call {
  const std::int16_t* const* taps;
  std::int64_t tap_count, pixels, step, channels;
  const std::int32_t* weight;  // [chunk of `lanes` channels][tap][lane]
  const std::int64_t* bias;    // [padded channels]
  std::int64_t* out;
  std::int64_t out_step;
};

struct DepthwiseKernels {
  int lanes;
  int group;            // taps multiplied at once in i8
  int weight_bytes;     // of an i8 weight as packed
  std::int32_t offset;  // added to each i8 input
  void (*f32)(const DepthwiseF32Call&);
  void (*i8)(const DepthwiseI8Call&);
  void (*i16)(const DepthwiseI16Call&);
};
const DepthwiseKernels& depthwise_kernels();

// [chunk of `lanes` channels][group of taps][lane][tap in the group], from weight(tap, channel) less its zero point.
// Empty when a difference does not fit the packed weight.
struct DepthwisePacking {
  std::int64_t lanes, group, bytes;
};
Lines<std::byte> pack_depthwise(const DepthwisePacking& packing, const std::int8_t* weight, std::int64_t taps,
                                std::int64_t channels, std::int64_t tap_stride, std::int64_t channel_stride,
                                std::int32_t weight_zp);

}  // namespace tosaic::cpu
