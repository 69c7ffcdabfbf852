// SPDX-License-Identifier: Apache-2.0
// The floating-point types narrower than 32 bits, as storage types: convert to double to compute, and back
// with round-to-nearest-even. IEEE binary16, bfloat16, and the OCP 8-bit floats E4M3 (no infinity) and E5M2.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tosaic {

// An IEEE-like format: 1 sign bit, `E` exponent bits, `M` mantissa bits. `HasInf` false: OCP E4M3 style,
// where the all-ones exponent holds numbers and only the all-ones code is NaN.
template <int E, int M, class Storage, bool HasInf = true>
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
    if (HasInf && exponent == (1 << E) - 1)
      value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (!HasInf && exponent == (1 << E) - 1 && mantissa == (1 << M) - 1)
      value = std::numeric_limits<double>::quiet_NaN();
    else if (exponent == 0)
      value = std::ldexp(mantissa, 1 - bias - M);
    else
      value = std::ldexp(mantissa + (1 << M), exponent - bias - M);
    return negative ? -value : value;
  }

  static Storage encode(double value) {
    const Storage sign = static_cast<Storage>((std::signbit(value) ? 1u : 0u) << (E + M));
    constexpr int top = (1 << E) - 1;
    const Storage nan = static_cast<Storage>(HasInf ? (top << M) | (1 << (M - 1)) : (top << M) | ((1 << M) - 1));
    const Storage overflow = HasInf ? static_cast<Storage>(top << M) : nan;
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
using Float8E4M3 = NarrowFloat<4, 3, std::uint8_t, false>;
using Float8E5M2 = NarrowFloat<5, 2, std::uint8_t>;

}  // namespace tosaic
