// SPDX-License-Identifier: Apache-2.0
// The inner loop of the output stage: bias, scale, zero point and clip of accumulators below 2^31 (scaling.h,
// fits_narrow). Chosen per instruction set at run time.
#pragma once
#include <cstdint>
#include <vector>

#include "ethosu/scaling.h"

namespace tosaic::ethosu {

// By channel. What is added before the shift depends on the sign of the accumulator.
struct NarrowScales {
  std::vector<std::int32_t> bias;
  std::vector<std::int64_t> multiplier, above, below, shift;
  void add(std::int64_t channel_bias, const Scale& scale, Rounding rounding);
};

struct FinishCall {
  const NarrowScales& scales;
  std::int64_t first_channel, channels;
  std::int64_t zero_point, low, high;
  const std::int32_t* sums;  // [pixels][stride], of which `channels` are used
  std::int64_t pixels, stride;
  std::int32_t* out;  // [pixels][channels]
};
void finish_pixels(const FinishCall& call);

}  // namespace tosaic::ethosu
