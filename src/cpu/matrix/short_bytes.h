// SPDX-License-Identifier: Apache-2.0
// Products of i16 with bytes by a kernel for bytes: x is 256 times its upper byte, plus its lower byte less 128, plus
// 128. So a sum is 256 times one of upper bytes, plus one of lower bytes, plus 128 times the weights' sum.
#pragma once
#include <cstdint>

#include "cpu/matrix/rescale.h"

namespace tosaic::cpu {

// Rows of `width` sums of upper bytes and as many of lower ones, of which `columns` count.
struct ByteSums {
  const std::int32_t* sums;
  std::int64_t rows, width, columns;
};
struct ShortBytes {
  void (*split)(const std::int16_t* from, std::int64_t count, std::int8_t* upper, std::int8_t* lower);
  // Of sums that come to i32, scaled; `first`: of the columns in the scales.
  void (*rescale)(const ByteSums& sums, const RescaleColumns& scales, std::int64_t first, std::int32_t lowest,
                  std::int32_t highest, std::int16_t* to, std::int64_t stride);
};
const ShortBytes& short_bytes();

}  // namespace tosaic::cpu
