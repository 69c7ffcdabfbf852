// SPDX-License-Identifier: Apache-2.0
// TOSA's integer scaling, exact (spec "Arithmetic helpers", scaling): value * multiplier / 2^shift, rounded half up.
// An empty optional: a REQUIRE of the specification does not hold, the result is unpredictable.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>

namespace tosaic::tosa {

inline bool scale_in_range(std::int64_t multiplier, std::int64_t shift) {
  return multiplier >= 0 && shift >= 2 && shift <= 62;
}

// 32-bit multiplier. Double rounding first rounds at 31 bits, away from zero, as older hardware does.
inline std::optional<std::int32_t> apply_scale_32(std::int64_t value, std::int32_t multiplier, int shift,
                                                  bool double_round) {
  if (!scale_in_range(multiplier, shift)) return std::nullopt;
  const std::int64_t bound = std::int64_t{1} << (shift - 1);
  if (value < -bound || value >= bound || value < INT32_MIN || value > INT32_MAX) return std::nullopt;
  std::int64_t round = bound;
  if (double_round && shift > 31) round += value >= 0 ? std::int64_t{1} << 30 : -(std::int64_t{1} << 30);
  return static_cast<std::int32_t>((value * multiplier + round) >> shift);
}

// 16-bit multiplier, value of up to 48 bits.
inline std::optional<std::int32_t> apply_scale_16(std::int64_t value, std::int16_t multiplier, int shift) {
  if (!scale_in_range(multiplier, shift) || value < -(std::int64_t{1} << 47) || value >= std::int64_t{1} << 47)
    return std::nullopt;
  // |value * multiplier| < 2^62, and the rounding adds at most 2^61.
  const std::int64_t result = (value * multiplier + (std::int64_t{1} << (shift - 1))) >> shift;
  if (result < INT32_MIN || result > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(result);
}

// 1 / count as a multiplier and shift, count > 0: (1 << 30) <= multiplier < (1 << 31).
struct ReciprocalScale {
  std::int32_t multiplier;
  int shift;
};
inline ReciprocalScale reciprocal_scale(std::uint32_t count) {
  const int k = 32 - std::countl_zero(count - 1);
  const std::int64_t numerator = ((std::int64_t{1} << 30) + 1) << k;
  return {static_cast<std::int32_t>(numerator / count), 30 + k};
}

// The 16-bit TABLE: 513 entries, 9 bits of index and 7 of interpolation; a 16.7 result.
// table(i) gives entry i. Empty when neighbours differ by more than 16 bits hold.
template <class Table>
std::optional<std::int32_t> interpolated_lookup(const Table& table, std::int16_t value) {
  const int index = (value >> 7) + 256, fraction = value & 0x7f;
  const std::int32_t base = table[static_cast<std::size_t>(index)];
  const std::int32_t slope = table[static_cast<std::size_t>(index) + 1] - base;
  if (slope < INT16_MIN || slope > INT16_MAX) return std::nullopt;
  return base * 128 + slope * fraction;
}

}  // namespace tosaic::tosa
