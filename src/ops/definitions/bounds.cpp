// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "simd/bulk_loops.h"

namespace tosaic::tosa {
namespace bounds {
namespace {

// Nothing times anything is nothing.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

// Of an integer result that saturates.
Bounds saturated(const View& view, const Bounds& bounds) {
  const IntegerRange range = range_of(view.out().dtype);
  const auto low = static_cast<double>(range.lowest), high = static_cast<double>(range.highest);
  return {std::clamp(bounds.lowest, low, high), std::clamp(bounds.highest, low, high)};
}
double most_of(const Dim& size) {
  const auto most = size.bounds().highest;
  return most ? static_cast<double>(*most) : Bounds{}.highest;
}
// Narrow integers have zero points, and saturate.
bool has_zero_point(const View& view) { return view.in(0).dtype == DType::i8 || view.in(0).dtype == DType::i16; }

}  // namespace

Bounds hull(const Bounds& a, const Bounds& b) { return {std::min(a.lowest, b.lowest), std::max(a.highest, b.highest)}; }

double magnitude(const Bounds& bounds) { return std::max(std::fabs(bounds.lowest), std::fabs(bounds.highest)); }

Bounds centred(const In& in, std::size_t i, std::size_t zero) {
  const Bounds x = in(i), z = in(zero);
  return {x.lowest - z.highest, x.highest - z.lowest};
}

Bounds first(const View&, const In& in) { return in(0); }
Bounds first_or_third(const View&, const In& in) { return hull(in(0), in(2)); }
Bounds second_or_third(const View&, const In& in) { return hull(in(1), in(2)); }

Bounds any(const View& view, const In& in) {
  Bounds all = in(0);
  for (std::size_t i = 1; i < view.inputs(); ++i) all = hull(all, in(i));
  return all;
}

Bounds sum(const View&, const In& in) {
  const Bounds a = in(0), b = in(1);
  return {a.lowest + b.lowest, a.highest + b.highest};
}
Bounds difference(const View&, const In& in) { return centred(in, 0, 1); }

// Operands {input, zero point, the result's}.
Bounds negative(const View& view, const In& in) {
  const Bounds x = in(0);
  if (!has_zero_point(view)) return {-x.highest, -x.lowest};
  const Bounds centre = centred(in, 0, 1), zero = in(2);
  return saturated(view, {zero.lowest - centre.highest, zero.highest - centre.lowest});
}
Bounds mean(const View& view, const In& in) {
  if (!has_zero_point(view)) return in(0);
  const Bounds centre = centred(in, 0, 1), zero = in(2);  // one more: division by the count is a rounded product
  return saturated(view, {zero.lowest + centre.lowest - 1, zero.highest + centre.highest + 1});
}

Bounds inner_product(const View& view, const In& in) {
  const double terms = static_cast<double>(view.in(0).shape.size(2));
  const double most = terms * magnitude(centred(in, 0, 2)) * magnitude(centred(in, 1, 3));
  return {-most, most};
}

Bounds product(const View& view, const In& in) {
  const Bounds a = in(0), b = in(1);
  const double all[] = {times(a.lowest, b.lowest), times(a.lowest, b.highest), times(a.highest, b.lowest),
                        times(a.highest, b.highest)};
  Bounds result{*std::min_element(std::begin(all), std::end(all)), *std::max_element(std::begin(all), std::end(all))};
  if (view.node().inputs[0] == view.node().inputs[1]) result.lowest = std::max(result.lowest, 0.0);
  if (is_float(view.in(0).dtype)) return result;
  const auto shift = view.constant_integers(2);
  if (!shift) return hull(result, {0, 0});
  const double factor = std::exp2(-static_cast<double>(shift->front()));
  return {std::floor(result.lowest * factor), std::ceil(result.highest * factor)};
}

Bounds magnitude(const View&, const In& in) {
  const Bounds x = in(0);
  const bool both_signs = x.lowest < 0 && x.highest > 0;
  return {both_signs ? 0 : std::min(std::fabs(x.lowest), std::fabs(x.highest)), magnitude(x)};
}
Bounds larger(const View&, const In& in) {
  const Bounds a = in(0), b = in(1);
  return {std::max(a.lowest, b.lowest), std::max(a.highest, b.highest)};
}
Bounds smaller(const View&, const In& in) {
  const Bounds a = in(0), b = in(1);
  return {std::min(a.lowest, b.lowest), std::min(a.highest, b.highest)};
}

// Partial sums of integers have to fit as well: of as many as there are, of one, of none where nobody knows how many.
Bounds along_axis(const View& view, const In& in) {
  const Bounds x = in(0);
  const Dim size = view.in(0).shape[static_cast<int>(view.integer("axis"))];
  const double n = most_of(size);
  const Bounds sums{std::min(times(n, x.lowest), x.lowest), std::max(times(n, x.highest), x.highest)};
  return size.is_number() ? sums : hull(sums, {0, 0});
}

Bounds index(const View& view, const In&) {
  return {0, most_of(view.in(0).shape[static_cast<int>(view.integer("axis"))]) - 1};
}

// Truncated towards zero, by 1 or more.
Bounds quotient(const View&, const In& in) {
  const double most = magnitude(in(0));
  return {-most, most};
}

// The longest run of ones that holds both, and what it inverts to.
Bounds bits(const View&, const In& in) {
  const Bounds x = hull(in(0), in(1));
  const double most = std::max(x.highest, -1 - x.lowest);
  if (!std::isfinite(most)) return {};
  double ones = 0;
  while (ones < most) ones = 2 * ones + 1;
  return {x.lowest < 0 ? -1 - ones : 0, ones};
}
Bounds inverted_bits(const View&, const In& in) {
  const Bounds x = in(0);
  return {-1 - x.highest, -1 - x.lowest};
}
Bounds shifted_right(const View&, const In& in) {
  const Bounds x = in(0);
  return x.lowest >= 0 ? Bounds{0, x.highest} : Bounds{};
}

Bounds halved(const View& view, const In& in) {
  const Bounds x = in(0), bits = in(1);
  const double most = std::exp2(-std::max(bits.lowest, 0.0)), least = std::exp2(-bits.highest);
  const double up = view.flag("round") ? 0.5 : 0;
  return {std::floor(times(x.lowest, x.lowest < 0 ? most : least) + up),
          std::floor(times(x.highest, x.highest > 0 ? most : least) + up)};
}
// Bits that are shifted out leave any number.
Bounds doubled(const View& view, const In& in) {
  const Bounds x = in(0), bits = in(1), all = bounds_of(view.out().dtype);
  const double factor = std::exp2(bits.highest);
  const Bounds result{std::min(x.lowest, times(x.lowest, factor)), std::max(x.highest, times(x.highest, factor))};
  return bits.lowest >= 0 && result.lowest >= all.lowest && result.highest <= all.highest ? result : Bounds{};
}

Bounds converted(const View& view, const In& in) {
  const DType from = view.in(0).dtype, to = view.out().dtype;
  if (to == DType::boolean) return {0, 1};
  const Bounds x = in(0);
  if (is_float(to) || !is_float(from)) return x;
  return saturated(view, {std::nearbyint(x.lowest), std::nearbyint(x.highest)});
}

Bounds clamped(const View& view, const In& in) {
  const auto bound = [&](std::string_view name) {
    const Attr* attr = view.node().attrs.find(name);
    const auto* integer = attr ? std::get_if<std::int64_t>(attr) : nullptr;
    return integer ? static_cast<double>(*integer) : view.node().attrs.get_or<double>(name, std::nan(""));
  };
  const double low = bound("min_val"), high = bound("max_val");
  if (!(low <= high)) return {};
  const Bounds x = in(0);
  return {std::clamp(x.lowest, low, high), std::clamp(x.highest, low, high)};
}

Bounds zero_or_one(const View&, const In&) { return {0, 1}; }
Bounds wave(const View&, const In&) { return {-1, 1}; }
Bounds not_negative(const View&, const In&) { return {0, Bounds{}.highest}; }

Bounds inverse(const View&, const In& in) {
  const Bounds x = in(0);
  if (x.lowest >= 0) return {1 / x.highest, x.lowest > 0 ? 1 / x.lowest : Bounds{}.highest};
  if (x.highest < 0) return {1 / x.highest, 1 / x.lowest};
  return {};
}

}  // namespace bounds

Op bounded(Op op, Bounds (*bounds)(const View&, const BoundsOf&)) {
  op.bounds = bounds;
  return op;
}

Op choosing(Op op, Bounds (*bounds)(const View&, const BoundsOf&)) {
  op.bounds = bounds;
  op.moves = Moves::compared;
  return op;
}

Bounds bounds_of(DType type) {
  if (!is_integer(type) && type != DType::boolean) return {};
  const IntegerRange range = range_of(type);
  return {static_cast<double>(range.lowest), static_cast<double>(range.highest)};
}

Bounds bounds_of(const Value& constant) {
  const auto count = static_cast<std::size_t>(constant.type.shape.elements());
  const DType type = constant.type.dtype;
  if (count == 0) return {};
  if (type == DType::i8) {  // weights, which are large
    const simd::Int8Extremes found =
        simd::bulk_loops().int8_extremes(constant.constant.as<std::int8_t>().data(), count);
    return {static_cast<double>(found.lowest), static_cast<double>(found.highest)};
  }
  Bounds found{INFINITY, -INFINITY};
  for (std::size_t i = 0; i < count; ++i) {
    const double x = element_as_double(type, constant.constant.data(), i);
    if (std::isnan(x)) return {};
    found = bounds::hull(found, {x, x});
  }
  return found;
}

Bounds bounds_of(const View& view, const BoundsOf& in) {
  const Op* op = find(view.node().op);
  if (!op || !op->bounds) return {};
  Bounds found = op->bounds(view, in);
  if (std::isnan(found.lowest)) found.lowest = Bounds{}.lowest;  // infinity less infinity
  if (std::isnan(found.highest)) found.highest = Bounds{}.highest;
  return found;
}

}  // namespace tosaic::tosa
