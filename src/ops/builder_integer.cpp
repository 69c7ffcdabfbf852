// SPDX-License-Identifier: Apache-2.0
// The quantised forms: RESCALE, clamping quantised values, and tables.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "ops/builder.h"
#include "ops/builder_bounds.h"
#include "ops/builder_domain.h"
#include "ops/fixed_point.h"

namespace tosaic {
namespace {
double quantised_value(double real, const Scales& s) {
  return std::nearbyint(real / s.scale[0]) + static_cast<double>(s.zero_point[0]);
}
constexpr double largest_rescale = 536870911;  // the largest factor whose shift RESCALE takes, 2

// RESCALE takes values below 2^(shift - 1) in magnitude (spec RESCALE). What may be larger saturates anyway, and may as
// well be that large.
Val within_rescale(Builder& b, Val x, const std::vector<std::int64_t>& shifts) {
  const auto smallest = *std::min_element(shifts.begin(), shifts.end());
  if (smallest > 31) return x;
  const double zero = static_cast<double>(x.type().scales->per_tensor() ? x.type().scales->zero_point[0] : 0);
  const double largest = largest_integer(b.graph(), x.id()) + std::fabs(zero);
  if (largest < std::exp2(static_cast<double>(smallest - 1))) return x;
  if (x.dtype() != DType::i32) x = b.as_i32(x);
  const TensorType type = x.type();
  std::vector<std::int64_t> lowest, highest, dims(static_cast<std::size_t>(x.rank()), 1);
  for (auto shift : shifts) {
    highest.push_back(shift > 31 ? range_of(DType::i32).highest : (std::int64_t{1} << (shift - 1)) - 1);
    lowest.push_back(-highest.back());
  }
  if (shifts.size() > 1) dims.back() = static_cast<std::int64_t>(shifts.size());
  x = b.binary(tosa::op::maximum, x, b.integers(lowest, DType::i32, Shape(dims)));
  x = b.binary(tosa::op::minimum, x, b.integers(highest, DType::i32, Shape(dims)));
  b.graph()[x.id()].type = type;
  return x;
}

// A third of the way between each two of TABLE's knots, where no wave's zeros hide; the outermost lie within the
// quantised values.
std::vector<double> points_between_knots() {
  std::vector<double> quantised_values(512);
  for (int k = 0; k < 512; ++k) quantised_values[static_cast<std::size_t>(k)] = 128.0 * (k - 256) + 43;
  return quantised_values;
}
std::vector<double> every_value() {
  std::vector<double> quantised_values(65536);
  for (int c = 0; c < 65536; ++c) quantised_values[static_cast<std::size_t>(c)] = std::max(c - 32768, -32767);
  return quantised_values;
}

// Does f leave the lines between its knots by more than 2^-10 of its range, and that in many places? One pole or kink
// makes few of them; a sine of many periods is nowhere near its lines.
bool wavers(const std::vector<double>& knots, const std::vector<double>& between) {
  constexpr std::ptrdiff_t many = 40;
  const auto [lowest, highest] = std::minmax_element(knots.begin(), knots.end());
  const auto [least, most] = std::minmax_element(between.begin(), between.end());
  const double tolerance = (std::max(*highest, *most) - std::min(*lowest, *least)) / 1024;
  std::ptrdiff_t off = 0;
  for (std::size_t k = 1; k + 1 < between.size(); ++k)
    off += std::fabs(knots[k] + (knots[k + 1] - knots[k]) * 43 / 128 - between[k]) > tolerance;
  return off > many;
}

// f at every quantised value, looked up one by one.
Val looked_up(Builder& b, Val x, const TensorType& to, const std::vector<double>& values) {
  const auto limits = quantised_range(to);
  double path = 0, lowest = values[1], highest = values[1];
  for (std::size_t i = 1; i < values.size(); ++i) {
    path += std::fabs(values[i] - values[i - 1]);
    lowest = std::min(lowest, values[i]);
    highest = std::max(highest, values[i]);
  }
  if (path > (highest - lowest) * 65535 / 8)
    b.refuse("quantise.table-resolution",
             fmt::format("between neighbouring quantised values of {} the function goes through {:.2g} of its range",
                         to_string(x.type()), path / (highest - lowest) / 65535));
  std::vector<std::int64_t> entries;
  for (double y : values)
    entries.push_back(static_cast<std::int64_t>(std::clamp(
        quantised_value(y, *to.scales), static_cast<double>(limits.lowest), static_cast<double>(limits.highest))));
  const Shape shape = x.shape();
  Val index = b.binary(tosa::op::add, b.as_i32(x), b.scalar(32768, DType::i32));
  index = b.reshape(b.relabelled(index, {DType::i32, shape, {}}), Shape{1, shape.elements()});
  Val y = b.tosa(tosa::op::gather, {b.integers(entries, to.dtype, Shape{1, 65536, 1}), index});
  y = b.reshape(y, shape);
  b.graph()[y.id()].type = to.with(shape);
  return y;
}

}  // namespace

Val Builder::zero_point(Val x) {
  double zero = 0;
  if (const auto& s = x.type().scales; s && is_integer(x.dtype())) zero = static_cast<double>(s->zero_point[0]);
  return filled(zero, x.dtype(), Shape{1});
}

Val Builder::rescale(Val x, TensorType to) {
  const TensorType from = x.type();
  if (from.dtype == to.dtype && from.scales == to.scales) return x;
  if (!from.quantised() || !to.quantised() || !to.scales->per_tensor())
    refuse("quantise.rescale-types", fmt::format("{} cannot be rescaled to {}", to_string(from), to_string(to)));
  const Scales &s = *from.scales, &t = *to.scales;
  if (!s.per_tensor() && s.axis != from.rank() - 1)
    refuse("quantise.rescale-axis", fmt::format("scales along axis {} of {}", s.axis, to_string(from.shape)));
  const bool scale32 = from.dtype != DType::i48;
  const bool bounded = t.lowest < t.highest;
  const bool saturates = scale32 && (to.dtype == DType::i8 || to.dtype == DType::i16 || bounded);
  std::vector<std::int64_t> multipliers, shifts;
  for (double scale : s.scale) {
    // Beyond 2^29 only 0 does not saturate.
    const double ratio = scale / t.scale[0];
    auto factor = fixed_point(saturates ? std::min(ratio, largest_rescale) : ratio, scale32);
    if (!factor)
      refuse("quantise.scale-range",
             fmt::format("the scale factor {} / {} is outside what RESCALE can express", scale, t.scale[0]));
    multipliers.push_back(factor->multiplier);
    shifts.push_back(factor->shift);
  }
  if (saturates) x = within_rescale(*this, x, shifts);
  const Shape count{static_cast<std::int64_t>(multipliers.size())};
  Val multiplier = integers(multipliers, scale32 ? DType::i32 : DType::i16, count);
  Val shift = integers(shifts, DType::i8, count);
  Val out_zero = filled(static_cast<double>(t.zero_point[0]), to.dtype, Shape{1});
  Val result = typed(tosa::op::rescale, {x, multiplier, shift, zero_point(x), out_zero},
                     {{"scale32", scale32},
                      {"rounding_mode", std::string("single_round")},
                      {"per_channel", multipliers.size() > 1},
                      {"input_unsigned", false},
                      {"output_unsigned", false}},
                     to.dtype);
  result = retyped(result, result.type().with(to.scales));
  // Quantised values in use narrower than the dtype (symmetric -127..127) are enforced by a clamp.
  auto limits = quantised_range(to), whole = range_of(to.dtype);
  if (to.dtype == DType::i8 || to.dtype == DType::i16)
    if (limits.lowest > whole.lowest || limits.highest < whole.highest) return clamp_quantised(result, limits);
  return result;
}

Val Builder::clamp_quantised(Val x, IntegerRange limits) {
  auto whole = range_of(x.dtype());
  limits.lowest = std::max(limits.lowest, whole.lowest);
  limits.highest = std::min(limits.highest, whole.highest);
  if (limits.lowest == whole.lowest && limits.highest == whole.highest) return x;
  TensorType type = x.type();
  Val result;
  if (x.dtype() == DType::i32 || x.dtype() == DType::i64) {
    auto bound = [&](std::int64_t code) { return integers(std::vector<std::int64_t>{code}, x.dtype(), Shape{}); };
    result = x;
    if (limits.lowest > whole.lowest) result = binary(tosa::op::maximum, result, bound(limits.lowest));
    if (limits.highest < whole.highest) result = binary(tosa::op::minimum, result, bound(limits.highest));
  } else {
    return clamp_node(x, limits);
  }
  return retyped(result, type);
}

Val Builder::clamp_node(Val x, IntegerRange limits) {
  const TensorType type = x.type();
  return retyped(
      tosa(tosa::op::clamp, {x},
           {{"min_val", limits.lowest}, {"max_val", limits.highest}, {"nan_mode", std::string("propagate")}}),
      type);
}

Val Builder::clamp(Val x, double lowest, double highest) {
  if (x.dtype() == DType::u8 && !x.type().quantised())  // TOSA's bytes are signed
    return cast(clamp(cast(x, DType::i32), std::max(lowest, 0.0), std::min(highest, 255.0)), DType::u8);
  if (x.type().quantised() || is_integer(x.dtype())) {
    auto limits = range_of(x.dtype());
    Scales identity;
    const Scales& s = x.type().scales ? *x.type().scales : identity;
    auto bound = [&](double real, std::int64_t otherwise) {
      if (std::isinf(real) || std::isnan(real)) return otherwise;
      const double code = quantised_value(real, s);
      if (code >= static_cast<double>(limits.highest)) return limits.highest;
      return code <= static_cast<double>(limits.lowest) ? limits.lowest : static_cast<std::int64_t>(code);
    };
    const IntegerRange wanted{bound(lowest, limits.lowest), bound(highest, limits.highest)};
    // An NPU's compiler wants to see the activation that the saturation before it has already done.
    if (spec_ && spec_->product && (x.dtype() == DType::i8 || x.dtype() == DType::i16)) return clamp_node(x, wanted);
    return clamp_quantised(x, wanted);
  }
  const double largest = std::numeric_limits<double>::infinity();
  return tosa(tosa::op::clamp, {x},
              {{"min_val", std::max(lowest, -largest)},
               {"max_val", std::min(highest, largest)},
               {"nan_mode", std::string("propagate")}});
}

Val Builder::as_i32(Val x) {
  if (!x.type().quantised())
    return x.dtype() == DType::i32 || x.dtype() == DType::i64 ? x : typed(tosa::op::cast, {x}, {}, DType::i32);
  const Scales& s = *x.type().scales;
  if (x.dtype() == DType::i32 && s.zero_point[0] == 0) return x;
  return rescale(x, {DType::i32, x.shape(), Scales{{s.scale[0]}, {0}}});
}

Val Builder::table(Val x, TensorType to, const Function& f) {
  if (!x.type().quantised() || !to.quantised())
    refuse("quantise.table-types", fmt::format("a table from {} to {}", to_string(x.type()), to_string(to)));
  const Scales t = *to.scales;
  const auto limits = quantised_range(to);
  const auto low = static_cast<double>(limits.lowest), high = static_cast<double>(limits.highest);
  const auto zero = static_cast<double>(t.zero_point[0]);
  // The function at a list of quantised values of s, saturated to what `to` can hold: infinities as the ends, and
  // outside of the function's domain its value at the end of the domain. One that is defined nowhere counts as 0.
  auto values_at = [&](std::vector<double> inputs, const Scales& s, bool knots) {
    for (double& c : inputs) c = (c - static_cast<double>(s.zero_point[0])) * s.scale[0];
    auto values = f(inputs);
    close_domain(f, inputs, values, knots);
    for (double& y : values)
      y = std::clamp(std::isnan(y) ? 0.0 : y, (low - zero) * t.scale[0], (high - zero) * t.scale[0]);
    return values;
  };

  if (x.dtype() == DType::i8 && to.dtype == DType::i8) {
    std::vector<double> inputs(256);
    for (int i = 0; i < 256; ++i) inputs[static_cast<std::size_t>(i)] = i - 128;
    std::vector<std::int64_t> entries;
    for (double y : values_at(std::move(inputs), *x.type().scales, false))
      entries.push_back(static_cast<std::int64_t>(std::clamp(quantised_value(y, t), low, high)));
    Val result = tosa(tosa::op::table, {x, integers(entries, DType::i8, Shape{256})});
    return retyped(result, result.type().with(to.scales));
  }
  const bool between_values = x.dtype() == DType::i16;
  // 16-bit quantised values: 513 knots 128 quantised values apart, interpolated linearly with 7 more fraction bits
  // (spec TABLE).
  if (x.dtype() == DType::i8) {
    const double scale = x.type().scales->scale[0];
    x = rescale(x, {DType::i16, x.shape(), Scales{{scale / 128}, {0}}});
  }
  if (x.dtype() != DType::i16) refuse("quantise.table-types", fmt::format("a table from {}", to_string(x.type())));
  std::vector<double> inputs(513);
  for (int k = 0; k <= 512; ++k) inputs[static_cast<std::size_t>(k)] = 128.0 * (k - 256);
  // The outermost knots lie beyond the quantised values of a symmetric tensor, and perhaps beyond where f is defined.
  inputs.front() = -32767;
  inputs.back() = 32767;
  auto knots = values_at(std::move(inputs), *x.type().scales, true);
  if (between_values && wavers(knots, values_at(points_between_knots(), *x.type().scales, false)))
    return looked_up(*this, x, to, values_at(every_value(), *x.type().scales, false));
  // Entries in the output's own quantised values leave an exact 2^-7 to the RESCALE, which NPUs have inside their table
  // lookup. For a narrower output: as large as entries, and the steps between neighbours, may be.
  double largest = 0;
  for (std::size_t k = 0; k < knots.size(); ++k)
    largest = std::max({largest, std::fabs(knots[k]), k ? std::fabs(knots[k] - knots[k - 1]) : 0.0});
  const double unit = to.dtype == DType::i16 ? t.scale[0] : largest > 0 ? largest / 32766 : 1.0;
  std::vector<std::int64_t> entries;
  for (double y : knots) entries.push_back(static_cast<std::int64_t>(std::nearbyint(y / unit)));
  // Where f jumps from one end of the quantised values to the other (1/x at 0), the knot before the jump gives way.
  for (std::size_t k = entries.size() - 1; k-- > 0;)
    entries[k] = std::clamp<std::int64_t>(entries[k], entries[k + 1] - 32767, entries[k + 1] + 32767);
  Val result = tosa(tosa::op::table, {x, integers(entries, DType::i16, Shape{513})});
  result = retyped(result, {DType::i32, result.shape(), Scales{{unit / 128}, {0}}});
  return rescale(result, to.with(result.shape()));
}

}  // namespace tosaic
