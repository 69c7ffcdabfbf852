// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/division.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/functions.h"

namespace tosaic::functions {
namespace {

constexpr int bits_a_step = 12;  // of a quotient: its products with the two parts of a divisor do not round

Val where(Val p, Val a, Val b) { return a.builder().select(p, a, b); }
Val where(Val p, double a, Val b) { return where(p, b.builder().like(b, a), b); }

Val differ_in_sign(Val r, Val d) {
  if (known(d, [](double one) { return one > 0; })) return less(r, 0.0);
  if (known(d, [](double one) { return one < 0; })) return greater(r, 0.0);
  Val differ = r.builder().binary(tosa::op::logical_xor, less(r, 0.0), less(d, 0.0));
  return both(differ, negation(equal(r, r.builder().like(r, 0.0))));
}

// The largest magnitude of a float that has just been made of a narrower number, as a power of 2.
int exponent_above(Val x) {
  const Graph& graph = x.builder().graph();
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->outputs.empty() || node->outputs[0] != x.id()) continue;
    const DType from = node->op == tosa::op::cast ? graph[node->inputs[0]].type.dtype : DType::f32;
    if (from == DType::f16) return 16;
    return from == DType::boolean || is_integer(from) ? 8 * static_cast<int>(storage_size(from)) : 128;
  }
  return 128;
}

// The least power of 2 that a magnitude may be; of constants it is known.
int exponent_below(Val d) {
  const int unknown = -200;
  int least = 128;
  const bool usable = known(d, [&](double one) {
    least = std::min(least, std::ilogb(one));
    return std::fabs(one) > 0 && !std::isinf(one);
  });
  return usable ? least : unknown;
}

// Divisors are brought below 2^7, with steps far from the ends of the floats' range; of dividends that are larger
// nothing is lost then.
struct Scale {
  Val there, back;
};
Scale scale_of(Val d) {
  Builder& b = d.builder();
  Scale scale{b.like(d, 0x1p64), b.like(d, 0x1p-64)};
  constexpr double scales[][2] = {{0x1p-64, 0x1p7}, {0x1p-8, 1}, {1, 0x1p-57}, {0x1p64, 0x1p-121}};
  for (const auto& [from, factor] : scales) {
    Val reached = at_least(d, b.like(d, from));
    scale = {where(reached, factor, scale.there), where(reached, 1 / factor, scale.back)};
  }
  return scale;
}

// x - round(x / d) * d exactly, for quotients of up to bits_a_step: d is high + low.
Val step_down(Val x, Val inverse, Val d, Val high, Val low) {
  Builder& b = x.builder();
  Val q = b.unary(tosa::op::floor, b.add(b.mul(x, inverse), 0.5));
  Val product = b.mul(q, d);
  Val rest = b.add(b.sub(b.mul(q, high), product), b.mul(q, low));
  return b.sub(b.sub(x, product), rest);
}

// What is left of a, for magnitudes in f32: from multiples of d * 2^12k down to those of d.
Val left_of(Val a, Val d, int bits) {
  Builder& b = a.builder();
  const Scale scale = scale_of(d);
  Val x = b.mul(a, scale.there), divisor = b.mul(d, scale.there);
  Val inverse = b.unary(tosa::op::reciprocal, divisor), split = b.mul(divisor, b.like(divisor, 4097));
  Val high = b.sub(split, b.sub(split, divisor)), low = b.sub(divisor, high);
  for (int k = (bits - 1) / bits_a_step; k >= 0; --k) {
    const double up = std::ldexp(1.0, bits_a_step * k);
    x = step_down(x, b.scaled(inverse, 1 / up), b.scaled(divisor, up), b.scaled(high, up), b.scaled(low, up));
  }
  x = where(less(x, 0.0), b.add(x, divisor), x);
  x = b.mul(x, scale.back);
  // Dividends below the divisor are what is left; of what cannot be told nothing is.
  Val known = greater(d, b.mul(a, b.like(a, 0x1p-126)));
  x = where(known, x, b.like(x, std::numeric_limits<double>::quiet_NaN()));
  return where(greater(d, a), b.broadcast_to(a, x.shape()), x);
}

}  // namespace

Val truncated_remainder(Val a, Val d) {
  Builder& b = a.builder();
  if (!is_float(a.dtype())) return b.sub(a, b.mul(b.binary(tosa::op::intdiv, a, d), d));
  if (Val wide = widened(a); wide.dtype() != a.dtype()) return b.cast(truncated_remainder(wide, widened(d)), a.dtype());
  const int bits = std::clamp(exponent_above(a) - exponent_below(d), bits_a_step, 11 * bits_a_step);
  return with_sign_of(a, left_of(b.unary(tosa::op::abs, a), b.unary(tosa::op::abs, d), bits));
}

Val floor_remainder(Val a, Val d) {
  Builder& b = a.builder();
  if (Val wide = widened(a); wide.dtype() != a.dtype()) return b.cast(floor_remainder(wide, widened(d)), a.dtype());
  Val r = truncated_remainder(a, d);
  return where(differ_in_sign(r, d), b.add(r, d), r);
}

Val floor_quotient(Val a, Val d) {
  Builder& b = a.builder();
  if (!is_float(a.dtype())) {
    Val q = b.binary(tosa::op::intdiv, a, d), r = b.sub(a, b.mul(q, d));
    return where(differ_in_sign(r, d), b.sub(q, 1.0), q);
  }
  if (Val wide = widened(a); wide.dtype() != a.dtype()) return b.cast(floor_quotient(wide, widened(d)), a.dtype());
  if (divides_exactly(d)) return b.unary(tosa::op::floor, plain_quotient(a, d));
  // The nearest whole number, and what it leaves, without rounding: less than nothing where the quotient is below it.
  Val q = b.unary(tosa::op::floor, b.add(nearest_quotient(a, d), 0.5));
  auto [product, low] = exact_product(q, d);
  Val left = b.sub(b.sub(a, product), low);
  return where(differ_in_sign(left, d), b.sub(q, 1.0), q);
}

}  // namespace tosaic::functions
