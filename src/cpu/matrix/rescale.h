// SPDX-License-Identifier: Apache-2.0
// Constants of RESCALE in the order in which vector code reads them. TOSA's arithmetic (spec "Integer scaling"):
//   result = (value * multiplier + round) >> shift, round = 1 << (shift - 1)
// in 64 bits. Vectors multiply their even and odd lanes apart, so the 64-bit constants of each vector of `lanes`
// columns are stored evens first, then odds.
#pragma once
#include <cstdint>
#include <span>

#include "cpu/lines.h"

namespace tosaic::cpu {

struct RescaleColumns {
  Lines<std::int32_t> multiplier;  // padded to whole vectors
  Lines<std::int64_t> shift, round;
};

// Repeats a per-tensor scale (one element) over all columns.
RescaleColumns rescale_columns(std::span<const std::int32_t> multiplier, std::span<const std::int8_t> shift,
                               std::int64_t columns, int lanes);

}  // namespace tosaic::cpu
