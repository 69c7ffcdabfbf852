// SPDX-License-Identifier: Apache-2.0
#include "simd/bulk_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/bulk_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The bits of magnitudes, as integers, are ordered as the magnitudes are.
constexpr std::int32_t without_sign = 0x7fffffff, infinity = 0x7f800000;

Extremes extremes(const float* x, std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> bits;
  const std::size_t lanes = hn::Lanes(d);
  const auto not_finite = hn::Set(bits, infinity), mask = hn::Set(bits, without_sign);
  auto low = hn::Zero(d), high = hn::Zero(d);
  auto most = hn::Zero(bits);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto magnitude = hn::And(hn::BitCast(bits, v), mask);
    const auto finite = hn::Lt(magnitude, not_finite);
    most = hn::Max(most, magnitude);
    const auto kept = hn::IfThenElseZero(hn::RebindMask(d, finite), v);
    low = hn::Min(low, kept);
    high = hn::Max(high, kept);
  }
  Extremes found{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)),
                 hn::GetLane(hn::MaxOfLanes(bits, most)) < infinity};
  for (; i < n; ++i) {
    if (!std::isfinite(x[i])) {
      found.all_finite = false;
      continue;
    }
    found.lowest = std::min(found.lowest, x[i]);
    found.highest = std::max(found.highest, x[i]);
  }
  return found;
}

Magnitudes magnitudes(const float* x, std::size_t n) {
  const hn::ScalableTag<std::int32_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto zero = hn::Zero(d), not_finite = hn::Set(d, infinity), mask = hn::Set(d, without_sign);
  auto most = zero, least = not_finite;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::And(hn::LoadU(d, reinterpret_cast<const std::int32_t*>(x + i)), mask);
    most = hn::Max(most, hn::IfThenElseZero(hn::Lt(bits, not_finite), bits));
    least = hn::Min(least, hn::IfThenElse(hn::Gt(bits, zero), bits, not_finite));
  }
  std::int32_t largest = hn::GetLane(hn::MaxOfLanes(d, most)), smallest = hn::GetLane(hn::MinOfLanes(d, least));
  for (; i < n; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(x[i]) & without_sign;
    if (bits < infinity) largest = std::max(largest, bits);
    if (bits > 0) smallest = std::min(smallest, bits);
  }
  return {std::bit_cast<float>(smallest), std::bit_cast<float>(largest)};
}

Int8Extremes int8_extremes(const std::int8_t* x, std::size_t n) {
  const hn::ScalableTag<std::int8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  Int8Extremes found{x[0], x[0]};
  std::size_t i = 0;
  if (n >= lanes) {
    auto low = hn::LoadU(d, x), high = low;
    for (i = lanes; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, x + i);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
    }
    std::int8_t lowest[HWY_MAX_BYTES], highest[HWY_MAX_BYTES];
    hn::StoreU(low, d, lowest);
    hn::StoreU(high, d, highest);
    found = {*std::min_element(lowest, lowest + lanes), *std::max_element(highest, highest + lanes)};
  }
  for (; i < n; ++i) found = {std::min(found.lowest, x[i]), std::max(found.highest, x[i])};
  return found;
}

void encode(const float* x, std::size_t n, double scale, double highest, std::int8_t* values) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const hn::Rebind<std::int32_t, decltype(d)> wide_value;
  const hn::Rebind<std::int8_t, decltype(d)> code;
  const std::size_t lanes = hn::Lanes(d);
  const double per_unit = 1 / scale;
  const auto factor = hn::Set(d, per_unit), low = hn::Set(d, -highest), high = hn::Set(d, highest);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto v = hn::Mul(hn::PromoteTo(d, hn::LoadU(narrow, x + i)), factor);
    v = hn::IfThenElseZero(hn::Eq(v, v), v);
    v = hn::Round(hn::Min(hn::Max(v, low), high));
    hn::StoreU(hn::DemoteTo(code, hn::DemoteTo(wide_value, v)), code, values + i);
  }
  for (; i < n; ++i) {
    const double v = x[i] * per_unit;
    values[i] = v == v ? static_cast<std::int8_t>(std::nearbyint(std::clamp(v, -highest, highest))) : std::int8_t{0};
  }
}

void coding_errors(const float* x, std::size_t n, const float (&scales)[16], float highest, float (&errors)[16]) {
  const hn::CappedTag<float, 16> d;
  const auto low = hn::Set(d, -highest), high = hn::Set(d, highest);
  for (std::size_t s = 0; s < 16; s += hn::Lanes(d)) {
    const auto scale = hn::LoadU(d, scales + s), per_unit = hn::Div(hn::Set(d, 1.0f), scale);
    auto error = hn::LoadU(d, errors + s);
    for (std::size_t i = 0; i < n; ++i) {
      const auto v = hn::Set(d, x[i]);
      const auto code = hn::Round(hn::Min(hn::Max(hn::Mul(v, per_unit), low), high));
      const auto off = hn::Sub(v, hn::Mul(code, scale));
      error = hn::Add(error, hn::Mul(off, off));
    }
    hn::StoreU(error, d, errors + s);
  }
}

// Down to 0.4: what is cut off then is more than rounding gains.
void four_bit_scales(float largest, float (&scales)[16]) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto whole = hn::Set(d, std::max(static_cast<float>(largest / 7.0), 1e-12f));
  for (std::size_t s = 0; s < 16; s += hn::Lanes(d)) {
    const auto share = hn::Sub(hn::Set(d, 1.0f), hn::Mul(hn::Set(d, 0.04f), hn::Iota(d, static_cast<float>(s))));
    const auto exact = hn::BitCast(bits, hn::Mul(whole, share));
    const auto odd = hn::And(hn::ShiftRight<16>(exact), hn::Set(bits, 1u));
    const auto rounded = hn::And(hn::Add(exact, hn::Add(odd, hn::Set(bits, 0x7fffu))), hn::Set(bits, 0xffff0000u));
    hn::StoreU(hn::BitCast(d, rounded), d, scales + s);
  }
}

float four_bits(const float* x, std::size_t n, std::int8_t* values) {
  float scales[16], errors[16] = {};
  four_bit_scales(magnitudes(x, n).largest, scales);
  coding_errors(x, n, scales, 7, errors);
  const float best = scales[std::min_element(std::begin(errors), std::end(errors)) - std::begin(errors)];
  encode(x, n, best, 7, values);
  return best;
}

void bins(const float* x, std::size_t n, float low, float per_unit, std::uint32_t last, std::uint32_t* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int32_t, decltype(d)> index;
  const std::size_t lanes = hn::Lanes(d);
  const auto first = hn::Set(d, low), factor = hn::Set(d, per_unit), zero = hn::Zero(d),
             end = hn::Set(d, static_cast<float>(last));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto at = hn::Mul(hn::Sub(hn::LoadU(d, x + i), first), factor);
    at = hn::IfThenElseZero(hn::Gt(at, zero), at);
    const auto found = hn::ConvertTo(index, hn::IfThenElse(hn::Lt(at, end), at, end));
    hn::StoreU(found, index, reinterpret_cast<std::int32_t*>(to + i));
  }
  for (; i < n; ++i) {
    float at = (x[i] - low) * per_unit;
    at = at > 0 ? at : 0;
    to[i] = static_cast<std::uint32_t>(at < static_cast<float>(last) ? at : static_cast<float>(last));
  }
}

void scale(const float* x, std::size_t n, double factor, float* to) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128  // they would make the largest number of an infinity
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, factor);
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(narrow, hn::Mul(hn::PromoteTo(d, hn::LoadU(narrow, x + i)), by)), narrow, to + i);
#endif
  for (; i < n; ++i) to[i] = static_cast<float>(x[i] * factor);
}

void add(const float* x, std::size_t n, double* sums) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LoadU(narrow, x + i))), d, sums + i);
  for (; i < n; ++i) sums[i] += x[i];
}

void measure(const float* x, std::size_t n, float* lowest, float* highest, double* squares) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(narrow, x + i);
    hn::StoreU(hn::Min(hn::LoadU(narrow, lowest + i), v), narrow, lowest + i);
    hn::StoreU(hn::Max(hn::LoadU(narrow, highest + i), v), narrow, highest + i);
    const auto wide = hn::PromoteTo(d, v);
    hn::StoreU(hn::Add(hn::LoadU(d, squares + i), hn::Mul(wide, wide)), d, squares + i);
  }
  for (; i < n; ++i) {
    lowest[i] = std::min(lowest[i], x[i]);
    highest[i] = std::max(highest[i], x[i]);
    squares[i] += static_cast<double>(x[i]) * x[i];
  }
}

double lost(const float* w, const std::int8_t* values, std::size_t n, double scale, const double* x) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const hn::Rebind<std::int32_t, decltype(d)> whole;
  const hn::Rebind<std::int8_t, decltype(d)> code;
  const std::size_t lanes = hn::Lanes(d);
  const auto by = hn::Set(d, scale);
  auto sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::PromoteTo(d, hn::PromoteTo(whole, hn::LoadU(code, values + i)));
    const auto off = hn::Sub(hn::PromoteTo(d, hn::LoadU(narrow, w + i)), hn::Mul(value, by));
    sum = hn::Add(sum, hn::Mul(off, hn::LoadU(d, x + i)));
  }
  double all = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) all += (w[i] - values[i] * scale) * x[i];
  return all;
}

}  // namespace

const BulkLoops& bulk_loops_here() {
  static const BulkLoops here{&extremes,  &magnitudes, &int8_extremes, &encode, &coding_errors, &four_bit_scales,
                              &four_bits, &bins,       &scale,         &add,    &measure,       &lost};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::simd {

HWY_EXPORT(bulk_loops_here);
const BulkLoops& bulk_loops() { return HWY_DYNAMIC_DISPATCH(bulk_loops_here)(); }

}  // namespace tosaic::simd
#endif
