// SPDX-License-Identifier: Apache-2.0
// Integers of 128 bits: the compiler's, and the same in two words where it has none (32-bit machines).
#pragma once
#include <compare>
#include <cstdint>

namespace tosaic::ethosu {

// What the simulator asks of the compiler's type, bit for bit. Shifts are by 0 to 127.
struct TwoWords {
  std::uint64_t low = 0;
  std::int64_t high = 0;

  constexpr TwoWords() = default;
  constexpr TwoWords(std::int64_t value) : low(static_cast<std::uint64_t>(value)), high(value < 0 ? -1 : 0) {}
  constexpr TwoWords(std::uint64_t low_word, std::int64_t high_word) : low(low_word), high(high_word) {}
  constexpr explicit operator std::int64_t() const { return static_cast<std::int64_t>(low); }

  friend constexpr TwoWords operator+(TwoWords a, TwoWords b) {
    const std::uint64_t sum = a.low + b.low;
    return {sum, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.high) + static_cast<std::uint64_t>(b.high) +
                                           (sum < a.low ? 1 : 0))};
  }
  constexpr TwoWords operator-() const { return TwoWords(~low, ~high) + TwoWords(1); }
  friend constexpr TwoWords operator-(TwoWords a, TwoWords b) { return a + -b; }
  friend constexpr TwoWords operator*(TwoWords a, TwoWords b) {
    const std::uint64_t a0 = a.low & 0xffffffff, a1 = a.low >> 32, b0 = b.low & 0xffffffff, b1 = b.low >> 32;
    const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    const std::uint64_t more = a0 * b1 + (middle & 0xffffffff);
    const std::uint64_t above = a1 * b1 + (middle >> 32) + (more >> 32);
    return {a.low * b.low, static_cast<std::int64_t>(above + a.low * static_cast<std::uint64_t>(b.high) +
                                                     static_cast<std::uint64_t>(a.high) * b.low)};
  }
  friend constexpr TwoWords operator<<(TwoWords a, int by) {
    if (by == 0) return a;
    if (by >= 64) return {0, static_cast<std::int64_t>(a.low << (by - 64))};
    return {a.low << by, static_cast<std::int64_t>(static_cast<std::uint64_t>(a.high) << by | a.low >> (64 - by))};
  }
  friend constexpr TwoWords operator>>(TwoWords a, int by) {
    if (by == 0) return a;
    if (by >= 64) return {static_cast<std::uint64_t>(a.high >> (by - 64)), a.high < 0 ? -1 : 0};
    return {a.low >> by | static_cast<std::uint64_t>(a.high) << (64 - by), a.high >> by};
  }
  friend constexpr bool operator==(TwoWords a, TwoWords b) = default;
  friend constexpr std::strong_ordering operator<=>(TwoWords a, TwoWords b) {
    return a.high != b.high ? a.high <=> b.high : a.low <=> b.low;
  }
};

#ifdef __SIZEOF_INT128__
__extension__ using Wide = __int128;
#else
using Wide = TwoWords;
#endif

}  // namespace tosaic::ethosu
