// SPDX-License-Identifier: Apache-2.0
// The floating-point types narrower than 32 bits, as storage types: convert to double to compute, and back
// with round-to-nearest-even. IEEE binary16, bfloat16, the OCP 8-bit floats E4M3 (no infinity) and E5M2, and those of
// OCP Microscaling 1.0, which have no infinity and no NaN: elements of 4, 6 and 8 bits, and the scale of a block.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tosaic {

// What the greatest exponent of a format holds: IEEE's infinity and NaN; numbers, but for one NaN; or numbers alone, of
// which the greatest stands for all beyond it, and for NaN.
enum class Specials : std::uint8_t { infinity_and_nan, nan, none };

// An IEEE-like format: 1 sign bit, `E` exponent bits, `M` mantissa bits.
template <int E, int M, class Storage, Specials specials = Specials::infinity_and_nan>
struct NarrowFloat {
  Storage bits = 0;
  static constexpr int bias = (1 << (E - 1)) - 1;

  NarrowFloat() = default;
  explicit NarrowFloat(double value) : bits(encode(value)) {}
  static NarrowFloat from_bits(Storage b) {
    NarrowFloat f;
    f.bits = b;
    return f;
  }
  explicit operator double() const { return decode(bits); }
  explicit operator float() const { return static_cast<float>(decode(bits)); }

  static double decode(Storage b) {
    const bool negative = (b >> (E + M)) & 1;
    const int exponent = (b >> M) & ((1 << E) - 1);
    const int mantissa = b & ((1 << M) - 1);
    double value;
    if (specials == Specials::infinity_and_nan && exponent == (1 << E) - 1)
      value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (specials == Specials::nan && exponent == (1 << E) - 1 && mantissa == (1 << M) - 1)
      value = std::numeric_limits<double>::quiet_NaN();
    else if (exponent == 0)
      value = std::ldexp(mantissa, 1 - bias - M);
    else
      value = std::ldexp(mantissa + (1 << M), exponent - bias - M);
    return negative ? -value : value;
  }

  static Storage encode(double value) {
    const Storage sign = static_cast<Storage>((std::signbit(value) ? 1u : 0u) << (E + M));
    constexpr bool infinite = specials == Specials::infinity_and_nan;
    constexpr int top = (1 << E) - 1;
    const Storage nan = static_cast<Storage>(infinite ? (top << M) | (1 << (M - 1)) : (top << M) | ((1 << M) - 1));
    const Storage overflow = infinite ? static_cast<Storage>(top << M) : nan;
    if (std::isnan(value)) return sign | nan;
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | overflow;
    int exponent;
    std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
    int quantum = std::max(exponent - 1, 1 - bias) - M;
    if (magnitude == 0) return sign;
    double steps = std::nearbyint(std::ldexp(magnitude, -quantum));  // ties to even
    // steps counts units of 2^quantum; the encoding is monotonic, so code = steps + offset of the binade.
    auto code = static_cast<std::int64_t>(steps) + (static_cast<std::int64_t>(quantum + M + bias - 1) << M);
    if (code >= overflow) return sign | overflow;
    return sign | static_cast<Storage>(code);
  }
  bool operator==(const NarrowFloat& other) const = default;
};

using Half = NarrowFloat<5, 10, std::uint16_t>;
using BFloat16 = NarrowFloat<8, 7, std::uint16_t>;
using Float8E4M3 = NarrowFloat<4, 3, std::uint8_t, Specials::nan>;
using Float8E5M2 = NarrowFloat<5, 2, std::uint8_t>;
using Float4E2M1 = NarrowFloat<2, 1, std::uint8_t, Specials::none>;
using Float6E2M3 = NarrowFloat<2, 3, std::uint8_t, Specials::none>;
using Float6E3M2 = NarrowFloat<3, 2, std::uint8_t, Specials::none>;

// Whole multiples of 1/64, in two's complement.
struct MxInt8 {
  std::int8_t bits = 0;
  static constexpr double greatest = 127.0 / 64;

  MxInt8() = default;
  explicit MxInt8(double value) {
    if (std::isnan(value)) value = greatest;
    bits = static_cast<std::int8_t>(std::nearbyint(64 * std::clamp(value, -2.0, greatest)));
  }
  explicit operator double() const { return bits / 64.0; }
  explicit operator float() const { return static_cast<float>(bits) / 64; }
  bool operator==(const MxInt8& other) const = default;
};

// A power of two by its exponent alone: the nearest to a number, of two as near the smaller; NaN is all ones.
struct Float8UE8M0 {
  std::uint8_t bits = 0;
  static constexpr int bias = 127;
  static constexpr std::uint8_t nan = 255;

  Float8UE8M0() = default;
  explicit Float8UE8M0(double value) {
    if (std::isnan(value)) {
      bits = nan;
    } else if (value > 0) {
      int exponent;  // value is in [2^(exponent-1), 2^exponent)
      const double part = std::frexp(std::min(value, 0x1p127), &exponent);
      bits = static_cast<std::uint8_t>(std::clamp(exponent - (part <= 0.75 ? 1 : 0), -bias, bias) + bias);
    }
  }
  explicit operator double() const {
    return bits == nan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - bias);
  }
  explicit operator float() const { return static_cast<float>(double(*this)); }
  bool operator==(const Float8UE8M0& other) const = default;
};

}  // namespace tosaic
