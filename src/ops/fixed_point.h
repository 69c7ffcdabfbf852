// SPDX-License-Identifier: Apache-2.0
// A positive real factor as TOSA's RESCALE takes it: factor = multiplier * 2^-shift (spec chapter "Scaling").
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace tosaic {

struct FixedPoint {
  std::int32_t multiplier = 0;  // scale32: [2^30, 2^31); otherwise [2^14, 2^15)
  std::int8_t shift = 0;        // [2, 62]
};

// Nothing when the factor is too large for any shift >= 2, or not a positive number.
inline std::optional<FixedPoint> fixed_point(double factor, bool scale32) {
  if (!(factor > 0) || !std::isfinite(factor)) return std::nullopt;
  const int width = scale32 ? 31 : 15;
  int exponent = 0;
  double mantissa = std::frexp(factor, &exponent);  // in [0.5, 1)
  auto multiplier = static_cast<std::int64_t>(std::nearbyint(std::ldexp(mantissa, width)));
  int shift = width - exponent;
  if (multiplier == std::int64_t{1} << width) {
    multiplier /= 2;
    --shift;
  }
  if (shift > 62) {  // tiny factors keep what precision is left
    multiplier >>= std::min(31, shift - 62);
    shift = 62;
  }
  if (shift < 2) return std::nullopt;
  return FixedPoint{static_cast<std::int32_t>(multiplier), static_cast<std::int8_t>(shift)};
}

}  // namespace tosaic
