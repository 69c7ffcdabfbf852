// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/exact.h"

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "ir/tosa_operators.h"
#include "ops/definitions/rest.h"
#include "ops/lowering/functions.h"

namespace tosaic::functions {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// 2^ceil(p / 2) + 1, p being the bits of the mantissa: what splits a number in two of half as many (Dekker).
double splitter(DType type) {
  switch (type) {
    case DType::bf16: return 17;
    case DType::f16: return 65;
    case DType::f64: return 134217729;
    default: return 4097;
  }
}

// x as the sum of two numbers whose products with others of their kind do not round; no low one where it is 0.
struct TwoParts {
  Val high;
  std::optional<Val> low;
};
TwoParts in_two_parts(Val x) {
  Builder& b = x.builder();
  Val scaled = b.mul(x, b.like(x, splitter(x.dtype())));
  Val high = b.sub(scaled, b.sub(scaled, x)), low = b.sub(x, high);
  if (known(low, [](double one) { return one == 0; })) return {x, std::nullopt};
  return {high, low};
}

// `better` where it is a number, else what it should have corrected: zeros, infinities and the largest numbers.
Val where_finite(Val better, Val plain) {
  Builder& b = better.builder();
  Val finite = greater(b.like(better, infinity), b.unary(tosa::op::abs, better));
  return b.select(finite, better, plain);
}

// The product of `factors` (of which k stands for 2^k) that make up the whole numbers `size`.
Val product_of(Val size, std::span<const Val> factors) {
  Builder& b = size.builder();
  Val product = b.like(size, 1.0);
  for (std::size_t k = factors.size(); k-- > 0;) {
    const double bit = std::ldexp(1.0, static_cast<int>(k));
    Val reached = at_least(size, b.like(size, bit)), factor = b.select(reached, factors[k], b.like(size, 1.0));
    product = k + 1 == factors.size() ? factor : b.mul(product, factor);
    if (k > 0) size = b.select(reached, b.sub(size, bit), size);
  }
  return product;
}

}  // namespace

bool known(Val x, const std::function<bool(double)>& holds) {
  const tosa::Spec* spec = x.builder().spec();
  if (spec && spec->has(tosa::sizes_vary)) return false;  // the number may be one of them: other nodes at other sizes
  if (!x.is_constant() || !x.shape().is_static()) return false;
  const Bytes& elements = x.builder().graph()[x.id()].constant;
  for (std::int64_t i = 0; i < x.shape().elements(); ++i)
    if (!holds(element_as_double(x.dtype(), elements.data(), static_cast<std::size_t>(i)))) return false;
  return true;
}

Product exact_product(Val a, Val c) {
  Builder& b = a.builder();
  const auto [a_high, a_low] = in_two_parts(a);
  const auto [c_high, c_low] = a.id() == c.id() ? TwoParts{a_high, a_low} : in_two_parts(c);
  Val product = b.mul(a, c);
  Val low = b.sub(b.mul(a_high, c_high), product);
  const auto add = [&](Val x, const std::optional<Val>& y) {
    if (y) low = b.add(low, b.mul(x, *y));
  };
  add(a_high, c_low);
  add(c_high, a_low);
  if (a_low) add(*a_low, c_low);
  return {product, low};
}

Val plain_quotient(Val a, Val d) { return a.builder().mul(a, a.builder().unary(tosa::op::reciprocal, d)); }

bool divides_exactly(Val d) {
  return known(d, [](double one) {
    int exponent = 0;
    return std::fabs(std::frexp(one, &exponent)) == 0.5 && std::abs(exponent - 1) <= 13;
  });
}

// q + (a - q d) / d. Divisors are brought near 1 first, where neither they, split, nor their reciprocals leave the
// range of floats.
Val nearest_quotient(Val a, Val d) {
  Builder& b = a.builder();
  if (divides_exactly(d)) return plain_quotient(a, d);
  if (a.dtype() == DType::f32 && d.dtype() == DType::f32) {
    Val size = b.unary(tosa::op::abs, d);
    Val up = b.select(less(size, 0x1p-60), b.like(d, 0x1p60), b.like(d, 1.0));
    Val scale = b.select(greater(size, 0x1p60), b.like(d, 0x1p-60), up);
    if (!known(scale, [](double one) { return one == 1; })) {
      a = b.mul(a, scale);
      d = b.mul(d, scale);
    }
  }
  Val inverse = b.unary(tosa::op::reciprocal, d), q = b.mul(a, inverse);
  auto [product, low] = exact_product(q, d);
  Val left = b.sub(b.sub(a, product), low);
  return where_finite(b.add(q, b.mul(left, inverse)), q);
}

Val quotient(Val a, Val d) { return a.builder().exact() ? nearest_quotient(a, d) : plain_quotient(a, d); }

// s + (x - s^2) / 2s, of numbers near 1.
Val nearest_square_root(Val x) {
  Builder& b = x.builder();
  Val back;
  const bool scaled = x.dtype() == DType::f32;
  if (scaled) {
    Val tiny = less(x, 0x1p-60), huge = greater(x, 0x1p60);
    const auto by = [&](double up, double down) {
      return b.select(huge, b.like(x, down), b.select(tiny, b.like(x, up), b.like(x, 1.0)));
    };
    back = by(0x1p-30, 0x1p30);
    x = b.mul(x, by(0x1p60, 0x1p-60));
  }
  Val inverse = b.unary(tosa::op::rsqrt, x), root = b.unary(tosa::op::reciprocal, inverse);
  auto [square, low] = exact_product(root, root);
  Val left = b.sub(b.sub(x, square), low);
  root = where_finite(b.add(root, b.mul(left, b.mul(inverse, b.like(x, 0.5)))), root);
  return scaled ? b.mul(root, back) : root;
}

Val inverse_square_root(Val x) {
  Builder& b = x.builder();
  if (!b.exact() || x.type().quantised()) return b.unary(tosa::op::rsqrt, x);
  return nearest_quotient(b.like(x, 1.0), nearest_square_root(x));
}

// Near a power p of the base that f32 has in full: its exponent and log(1 + t), t = (x - p) / p, by its series.
Val nearest_logarithm(Val x, double base, Val plain) {
  Builder& b = x.builder();
  Val exponent = b.unary(tosa::op::floor, b.add(plain, 0.5));
  Val near = at_least(b.like(x, 0x1p-12), b.unary(tosa::op::abs, b.sub(plain, exponent)));
  near = both(near, at_least(b.like(x, std::floor(126 / std::log2(base))), b.unary(tosa::op::abs, exponent)));
  exponent = b.select(near, exponent, b.like(x, 0.0));
  Val below = less(exponent, 0.0);
  std::vector<Val> factors;
  for (double power = base; power < std::numeric_limits<float>::max(); power *= power)
    factors.push_back(b.select(below, b.like(x, 1 / power), b.like(x, power)));
  Val power = product_of(b.unary(tosa::op::abs, exponent), factors);
  Val t = b.mul(b.sub(x, power), b.unary(tosa::op::reciprocal, power));
  Val rest = b.mul(b.sub(t, b.mul(b.mul(t, t), b.like(t, 0.5))), b.like(t, 1 / std::log(base)));
  return b.select(near, b.add(exponent, rest), plain);
}

Val nearest_power(Val a, Val y, Val plain) {
  Builder& b = a.builder();
  constexpr int bits = 7;
  Val size = b.unary(tosa::op::abs, y);
  Val whole = both(equal(b.unary(tosa::op::floor, y), y), greater(b.like(y, std::ldexp(1.0, bits)), size));
  std::vector<Val> factors{a};
  for (int k = 1; k < bits; ++k) factors.push_back(b.mul(factors.back(), factors.back()));
  Val power = product_of(b.select(whole, size, b.like(y, 0.0)), factors);
  power = b.select(less(y, 0.0), nearest_quotient(b.like(power, 1.0), power), power);
  return b.select(whole, power, plain);
}

}  // namespace tosaic::functions
