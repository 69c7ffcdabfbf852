// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/whole_numbers.h"

#include <cmath>
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"

namespace tosaic::functions {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Val of_scale(Val x, double scale) { return x.builder().relabelled(x, {x.dtype(), x.shape(), Scales{{scale}, {0}}}); }

// The bits of x behind the point; none where its unit is whole itself.
int fraction_bits(Val x) {
  int exponent = 0;
  if (x.dtype() != DType::i32 || std::frexp(x.type().scales->scale[0], &exponent) != 0.5)
    x.builder().refuse("quantise.division", "whole numbers of " + to_string(x.type()));
  return std::max(1 - exponent, 0);
}

Val floor_of_quantised(Val x) {
  Builder& b = x.builder();
  const int bits = fraction_bits(x);
  if (bits == 0) return x;
  // Half of one less, rounded, is rounded down; every Ethos-U has shifts that round.
  const Val lower = b.sub(x, b.like(x, 0.5));
  return of_scale(b.binary(tosa::op::arithmetic_right_shift, lower, b.scalar(bits, DType::i32), {{"round", true}}), 1);
}

Val negative(Val x) { return x.builder().sub(x.builder().like(x, 0.0), x); }
Val positive_part(Val x) { return x.builder().clamp(x, 0.0, infinity); }

// The number above a tie, less 1 where it is odd.
Val round_quantised(Val x) {
  Builder& b = x.builder();
  if (fraction_bits(x) == 0) return x;
  const double unit = x.type().scales->scale[0];
  const Val up = floor(b.add(x, 0.5)), up_by = b.sub(in_units_of(x, up), x);
  const Val tie = of_scale(b.clamp(b.sub(up_by, b.like(x, 0.5 - unit)), 0.0, unit), 1);
  const Val half = b.scaled(up, 0.5), odd = b.sub(up, b.scaled(in_units_of(half, floor(half)), 2));
  return b.sub(up, b.mul(tie, odd));
}

}  // namespace

Val floor(Val x) { return x.type().quantised() ? floor_of_quantised(x) : x.builder().unary(tosa::op::floor, x); }

Val ceil(Val x) {
  return x.type().quantised() ? negative(floor_of_quantised(negative(x))) : x.builder().unary(tosa::op::ceil, x);
}

Val truncated(Val x) {
  Builder& b = x.builder();
  if (!x.type().quantised()) return b.select(less(x, 0.0), ceil(x), floor(x));
  return b.sub(floor(positive_part(x)), floor(positive_part(negative(x))));
}

// floor(x) and its distance d from x are exact in every format; a tie goes to the even neighbour.
Val round_half_even(Val x) {
  if (x.type().quantised()) return round_quantised(x);
  Builder& b = x.builder();
  Val low = floor(x), d = b.sub(x, low), half = b.scaled(low, 0.5);
  Val odd = negation(equal(half, floor(half)));
  Val up = either(greater(d, 0.5), both(equal(d, b.like(x, 0.5)), odd));
  return b.select(up, b.add(low, 1.0), low);
}

Val in_units_of(Val x, Val whole) {
  const int bits = x.type().quantised() ? fraction_bits(x) : 0;
  if (bits == 0) return whole;
  Builder& b = x.builder();
  return of_scale(b.binary(tosa::op::logical_left_shift, whole, b.scalar(bits, DType::i32)), x.type().scales->scale[0]);
}

Val in_binary_units(Val x) {
  if (!x.type().quantised()) return x;
  const double unit = std::exp2(std::ceil(std::log2(x.type().scales->scale[0])));
  return x.builder().rescale(x, {DType::i32, x.shape(), Scales{{unit}, {0}}});
}

}  // namespace tosaic::functions
