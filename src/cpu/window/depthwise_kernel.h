// SPDX-License-Identifier: Apache-2.0
// Depthwise products: every channel with itself, over the taps of a window. A call computes neighbouring output
// pixels. `taps` point at the first pixel's inputs, every further pixel's are `step` elements on.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cpu/lines.h"

namespace tosaic::cpu {

// Pixels of one row, by columns of a square window whose columns adjoin: what lies above each other there is read once
// for all pixels whose window has it.
template <class T>
struct DepthwiseColumns {
  const T* const* lines;       // as many as the window is high; lines outside are made of `padding`, too
  std::int64_t side, stride;   // of the window
  std::int64_t width, before;  // of a line; pixel p's window begins at its column p * stride - before
  std::int64_t first, last;    // pixels; `out` is that of `first`
  T padding;
};
// Which windows go so: kernels are compiled for each of these.
using ColumnSides = std::integer_sequence<int, 3, 5, 7>;
using ColumnStrides = std::integer_sequence<int, 1, 2>;
bool takes_columns(std::int64_t height, std::int64_t width, std::int64_t stride);

// What becomes of sums of f32, and the constants of their channels.
struct DepthwiseF32Channels {
  std::int64_t channels;
  const float* weight;  // [tap][weight_stride], taps column by column, channels padded with zeros
  std::int64_t weight_stride;
  const float* bias;  // [weight_stride]
  float lowest, highest;
  float* out;
  std::int64_t out_step;
};
struct DepthwiseF32Call {
  DepthwiseF32Channels of;
  const float* const* taps;
  std::int64_t tap_count, pixels, step;
};
struct DepthwiseF32Columns {  // of a vector of channels at least
  DepthwiseF32Channels of;
  DepthwiseColumns<float> window;
};

// Of i8. The constants are padded to whole vectors.
struct DepthwiseI8Channels {
  std::int64_t channels;
  const void* weight;                              // see pack_depthwise
  const std::int32_t* term;                        // the bias and what the zero points add
  const std::int32_t *multiplier, *shift, *round;  // see RescaleColumns
  std::int32_t zero_point, lowest, highest;
  std::int8_t* out;
  std::int64_t out_step;
};
struct DepthwiseI8Call {
  DepthwiseI8Channels of;
  const std::int8_t* const* taps;  // tap_count of them, rounded up to whole groups; spare ones count nothing
  std::int64_t tap_count, pixels, step;
  std::int32_t* sums;  // or null: rescale
};
struct DepthwiseI8Columns {  // rescaled
  DepthwiseI8Channels of;
  DepthwiseColumns<std::int8_t> window;
};

// Of i16. Chunks of channels are whole vectors of i16; the last one ends with the last channel where there are so many.
// Constants are [chunk][channel of the chunk, in the order of depthwise_i16_channel]. Products of at most 128 taps fit
// i32 (2^15 * 2^8 * 2^7).
struct DepthwiseI16Call {
  const std::int16_t* const* taps;  // as those of i8
  std::int64_t tap_count, pixels, step, channels;
  const void* weight;                              // [chunk][group of taps][channel of the chunk][tap in the group]
  const std::int32_t* term;                        // what sums in i32 begin with
  const std::int32_t *multiplier, *shift, *round;  // see RescaleColumns
  std::int32_t lowest, highest;
  std::int16_t* out;
  std::int64_t out_step;
  const std::int64_t* bias;
  std::int64_t* sums;  // plus the bias; or null: rescale
};
// Which channel of its chunk lane `lane` of vector `vector` of i32 has, where a chunk has so many: two have the halves
// of each 128 bits of i16.
constexpr std::int64_t depthwise_i16_channel(std::int64_t vectors, std::int64_t vector, std::int64_t lane) {
  return vectors == 1 ? lane : lane / 4 * 8 + vector * 4 + lane % 4;
}

struct DepthwiseF32Kernels {
  int lanes;
  void (*pixels)(const DepthwiseF32Call&);
  void (*columns)(const DepthwiseF32Columns&);  // null: `pixels` does them, with the same result
};
const DepthwiseF32Kernels& depthwise_f32_kernels();

struct DepthwiseI8Kernels {
  int lanes;
  int group;            // taps multiplied at once
  int weight_bytes;     // of a weight as packed
  std::int32_t offset;  // added to each input
  void (*pixels)(const DepthwiseI8Call&);
  void (*columns)(const DepthwiseI8Columns&);  // or null
};
const DepthwiseI8Kernels& depthwise_i8_kernels();

struct DepthwiseI16Kernels {
  int lanes, vectors;  // of a vector of i32, and how many a chunk has
  int group;           // taps multiplied at once
  int weight_bytes;    // of a weight as packed
  void (*pixels)(const DepthwiseI16Call&);
};
const DepthwiseI16Kernels& depthwise_i16_kernels();

// [chunk of `lanes` channels][group of taps][lane][tap in the group], from weight(tap, channel) less its zero point,
// the taps as listed; no_tap: a weight of zero. Empty when a difference does not fit the packed weight.
struct DepthwisePacking {
  std::int64_t lanes, group, bytes;
};
constexpr std::int64_t no_tap = -1;
Lines<std::byte> pack_depthwise(const DepthwisePacking& packing, std::span<const std::int64_t> taps,
                                const std::int8_t* weight, std::int64_t channels, std::int64_t tap_stride,
                                std::int64_t channel_stride, std::int32_t weight_zp);
// Those of a window column by column, each filled to whole groups.
std::vector<std::int64_t> taps_by_columns(std::int64_t height, std::int64_t width, std::int64_t group);

}  // namespace tosaic::cpu
