// SPDX-License-Identifier: Apache-2.0
// Polynomial coefficients are minimax fits of the relative error (Remez), computed for this file.
#include "ops/lowering/functions.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"

namespace tosaic::functions {
namespace {

constexpr double pi = std::numbers::pi, ln2 = std::numbers::ln2;

Val where(Val p, Val a, Val b) { return a.builder().select(p, a, b); }
Val where(Val p, double a, Val b) { return where(p, b.builder().like(b, a), b); }

// atanh(s) / s - 1 = z * Q(z), z = s^2 <= 1/16 and a little; error 3e-10 of atanh.
Val atanh_series(Val s) {
  Builder& b = s.builder();
  Val z = b.mul(s, s);
  Val q = polynomial(z, {0.333333206129, 0.200018976571, 0.141982219393, 0.126775630706});
  return b.add(s, b.mul(b.mul(s, z), q));
}

// asin(s) for s^2 = z <= 1/4; error 3e-10.
Val asin_series(Val s, Val z) {
  Builder& b = s.builder();
  Val q = polynomial(
      z, {0.166666599914, 0.0750050417967, 0.0445169556005, 0.0318077186437, 0.0144385920795, 0.037516482009});
  return b.add(s, b.mul(b.mul(s, z), q));
}

// |x| beyond 1/2 goes through asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)), which keeps both functions accurate at 1.
struct HalfAngle {
  Val outer;  // |x| > 1/2
  Val angle;  // asin of |x|, or of sqrt((1 - |x|) / 2) when outer
};
HalfAngle half_angle(Val x) {
  Builder& b = x.builder();
  Val magnitude = b.unary(tosa::op::abs, x);
  Val outer = greater(magnitude, 0.5);
  Val z = where(outer, b.scaled(b.sub(b.like(x, 1.0), magnitude), 0.5), b.mul(x, x));
  Val s = where(outer, square_root(z), magnitude);
  return {outer, asin_series(s, z)};
}

}  // namespace

Val polynomial(Val z, std::initializer_list<double> coefficients) {
  Builder& b = z.builder();
  std::vector<double> c(coefficients);
  Val y = b.like(z, c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) y = b.add(b.mul(y, z), c[i]);
  return y;
}

Val widened(Val x) { return x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? x.builder().cast(x, DType::f32) : x; }
Val narrowed_to(Val y, DType to) { return y.type().quantised() ? y : y.builder().cast(y, to); }

// 1 / (1 / sqrt(x)): right at 0 and infinity, and more accurate than POW may be (spec POW, precision).
Val square_root(Val x) {
  Builder& b = x.builder();
  if (b.exact() && !x.type().quantised()) return nearest_square_root(x);
  return b.unary(tosa::op::reciprocal, b.unary(tosa::op::rsqrt, x));
}

Val exp_minus_one(Val x) {
  Builder& b = x.builder();
  Val p = polynomial(
      x, {0.500000005632, 0.166666669166, 0.0416663132069, 0.00833321551918, 0.00139443003301, 0.000199645290326});
  Val near = b.add(x, b.mul(b.mul(x, x), p));
  Val far = b.sub(b.unary(tosa::op::exp, x), 1.0);
  return where(less(b.unary(tosa::op::abs, x), 0.35), near, far);
}

// Near 0, log(1 + x) = 2 atanh(x / (2 + x)): 1 + x would round x away.
Val log_one_plus(Val x) {
  Builder& b = x.builder();
  Val s = b.mul(x, b.unary(tosa::op::reciprocal, b.add(x, 2.0)));
  Val far = b.unary(tosa::op::log, b.add(x, 1.0));
  return where(less(b.unary(tosa::op::abs, x), 0.4), b.scaled(atanh_series(s), 2.0), far);
}

Val inverse_tanh(Val x) {
  Builder& b = x.builder();
  Val one = b.like(x, 1.0);
  Val ratio = b.mul(b.add(one, x), b.unary(tosa::op::reciprocal, b.sub(one, x)));
  Val far = b.scaled(b.unary(tosa::op::log, ratio), 0.5);
  return where(less(b.unary(tosa::op::abs, x), 0.25), atanh_series(x), far);
}

// (e^x - e^-x) / 2, written as products of e^(x/2), which overflow only where the result does.
Val hyperbolic_sine(Val x) {
  Builder& b = x.builder();
  Val z = b.mul(x, x);
  Val p = polynomial(z, {0.166666664976, 0.00833335005812, 0.000198361597815, 2.81695122417e-6});
  Val near = b.add(x, b.mul(b.mul(x, z), p));
  Val up = b.unary(tosa::op::exp, b.scaled(x, 0.5)), down = b.unary(tosa::op::reciprocal, up);
  Val far = b.sub(b.mul(b.scaled(up, 0.5), up), b.mul(b.scaled(down, 0.5), down));
  return where(less(b.unary(tosa::op::abs, x), 1.0), near, far);
}

Val hyperbolic_cosine(Val x) {
  Builder& b = x.builder();
  Val up = b.unary(tosa::op::exp, b.scaled(x, 0.5)), down = b.unary(tosa::op::reciprocal, up);
  return b.add(b.mul(b.scaled(up, 0.5), up), b.mul(b.scaled(down, 0.5), down));
}

// Error 3e-9.
Val arctangent_of_unit(Val t) {
  Builder& b = t.builder();
  Val z = b.mul(t, t);
  Val p = polynomial(z, {-0.333332990908, 0.199985483316, -0.14264242093, 0.109521875524, -0.0840345470819,
                         0.0579576584105, -0.0311779028252, 0.010914633086, -0.00179362721524});
  return b.add(t, b.mul(b.mul(t, z), p));
}

Val arcsine(Val x) {
  Builder& b = x.builder();
  auto [outer, angle] = half_angle(x);
  Val complement = b.sub(b.like(x, pi / 2), b.scaled(angle, 2.0));
  return with_sign_of(x, where(outer, complement, angle));
}

Val arccosine(Val x) {
  Builder& b = x.builder();
  auto [outer, angle] = half_angle(x);
  Val negative = less(x, 0.0), twice = b.scaled(angle, 2.0);
  Val inside = b.sub(b.like(x, pi / 2), with_sign_of(x, angle));
  return where(outer, where(negative, b.sub(b.like(x, pi), twice), twice), inside);
}

// The smaller of |x| and 1 / |x|, and the complement to pi/2 for the latter.
Val arctangent(Val x) {
  Builder& b = x.builder();
  Val magnitude = b.unary(tosa::op::abs, x);
  Val angle = arctangent_of_unit(b.minimum(magnitude, b.unary(tosa::op::reciprocal, magnitude)));
  Val turned = b.sub(b.like(x, pi / 2), angle);
  return with_sign_of(x, where(greater(magnitude, 1.0), turned, angle));
}

Val with_sign_of(Val sign, Val x) { return where(less(sign, 0.0), x.builder().negate(x), x); }

Val rounded(Val x, DType to) { return x.builder().tosa_all(tosa::op::cast, {x}, {}, to).at(0); }

Val whole_power(Val base, std::int64_t exponent) {
  Builder& b = base.builder();
  if (exponent < 0) return whole_power(b.unary(tosa::op::reciprocal, base), -exponent);
  if (exponent == 0) return b.broadcast_to(b.like(base, 1.0), base.shape());
  if (exponent == 1) return base;
  Val root = whole_power(base, exponent / 2), even = b.mul(root, root);
  return exponent % 2 ? b.mul(even, base) : even;
}

// Quantised values have no choice on every NPU: what is beyond the bound, held to one unit, is 0 or 1.
Val up_to(Val x, double bound, Val a, Val c) {
  Builder& b = x.builder();
  if (!x.type().quantised()) return b.select(at_least(b.like(x, bound), x), a, c);
  const double unit = x.type().scales->scale[0];
  const Val above = b.clamp(b.sub(x, b.like(x, bound)), 0.0, unit);
  return b.add(a, b.mul(b.sub(c, a), b.relabelled(above, {above.dtype(), above.shape(), Scales{{1}, {0}}})));
}

Val weighted_sum(Val a, Val x, double weight) {
  Builder& b = a.builder();
  if (weight == 1) return b.add(a, x);
  if (weight == -1) return b.sub(a, x);
  if (!a.type().quantised()) return b.add(a, b.scaled(x, weight));
  if (weight == 0) return b.add(a, b.like(a, 0.0));
  Val part = b.rescale(b.scaled(x, std::fabs(weight)), x.type());
  return weight > 0 ? b.add(a, part) : b.sub(a, part);
}

Val magnitude(Val x) {
  Val y = x.builder().unary(tosa::op::abs, x);
  x.builder().graph()[y.id()].type = x.type();
  return y;
}

Val greater(Val a, Val b) { return a.builder().binary(tosa::op::greater, a, b); }
Val greater(Val a, double b) { return greater(a, a.builder().like(a, b)); }
Val less(Val a, double b) { return greater(a.builder().like(a, b), a); }
Val at_least(Val a, Val b) { return a.builder().binary(tosa::op::greater_equal, a, b); }
Val equal(Val a, Val b) { return a.builder().binary(tosa::op::equal, a, b); }
Val both(Val p, Val q) { return p.builder().binary(tosa::op::logical_and, p, q); }
Val either(Val p, Val q) { return p.builder().binary(tosa::op::logical_or, p, q); }
Val negation(Val p) { return p.builder().unary(tosa::op::logical_not, p); }

}  // namespace tosaic::functions
