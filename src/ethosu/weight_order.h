// SPDX-License-Identifier: Apache-2.0
// Where each weight of a decoded stream belongs: the order in which the hardware consumes them.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace tosaic::ethosu {

// Weights of one operation, dense: [output channel][kernel row][kernel column][input channel]. Depthwise has one
// input channel per output channel.
struct Weights {
  std::int64_t outputs = 0, kernel_h = 0, kernel_w = 0, inputs = 0;
  std::vector<std::int16_t> values;
  std::int64_t taps() const { return kernel_h * kernel_w; }
  const std::int16_t* of(std::int64_t output) const { return values.data() + output * taps() * inputs; }
};

struct WeightOrder {
  bool u85 = false;
  bool depthwise = false;
  bool part_kernel = false;
  bool fast_format = false;  // U85's FWD: one stream, interleaved when there are several cores
  bool sparse = false;
  int macs = 0;
  int streams = 1;
  int ifm_bits = 8;
  std::int64_t ofm_block_depth = 0;
  int ofm_micro_depth = 8;
  std::int64_t dilation_x = 1, dilation_y = 1, stride_x = 1, stride_y = 1;
  bool operator==(const WeightOrder&) const = default;
};

// How many weights, zeros of padding included, stream `s` holds. 0: more than `limit`.
std::size_t count_weights(const WeightOrder& order, const Weights& shape, int stream, std::size_t limit);
// Puts the weights of stream `s` where they belong; `decoded` has the counted length. Error: ethosu.weights when a
// place that only pads holds something else than zero.
Status arrange_weights(const WeightOrder& order, const std::vector<std::int16_t>& decoded, int stream,
                       Weights& weights);

}  // namespace tosaic::ethosu
