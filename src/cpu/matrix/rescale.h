// SPDX-License-Identifier: Apache-2.0
// Constants of RESCALE in the form in which vector code reads them. TOSA's arithmetic (spec "Integer scaling") is
//   result = (value * multiplier + round) >> shift, round = 1 << (shift - 1)
// in 64 bits. From a shift of 33 on, `round` is a multiple of 2^32: the upper half of the product is all that is
// needed, and the rest is done in 32 bits. Scales of sums that become i8 are below 1/4, and have such shifts.
#pragma once
#include <cstdint>
#include <span>

#include "cpu/lines.h"

namespace tosaic::cpu {

constexpr int least_column_shift = 33;

struct RescaleColumns {
  // Padded to whole vectors. shift: less 32; round: its upper half.
  Lines<std::int32_t> multiplier, shift, round;
};

// Repeats a per-tensor scale (one element) over all columns. Shifts: least_column_shift at least.
RescaleColumns rescale_columns(std::span<const std::int32_t> multiplier, std::span<const std::int8_t> shift,
                               std::int64_t columns, int lanes);

}  // namespace tosaic::cpu
