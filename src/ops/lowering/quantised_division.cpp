// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/quantised_division.h"

#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "ops/builder_bounds.h"
#include "ops/lowering/division.h"
#include "ops/lowering/promotion.h"

namespace tosaic {
namespace {

Val of_scale(Val x, double scale) { return x.builder().relabelled(x, {DType::i32, x.shape(), Scales{{scale}, {0}}}); }
Val integers_of(Val x) { return x.builder().relabelled(x, {DType::i32, x.shape(), std::nullopt}); }
// Of plain integers.
Val negative(Val x) { return x.builder().sub(x.builder().like(x, 0.0), x); }

Division by_tensor(Builder& b, Val x, Val y, Toward toward) {
  if (x.type().scales != y.type().scales || x.is_constant() || y.is_constant())
    b.refuse("quantise.division", "a quotient of " + to_string(x.type()) + " and " + to_string(y.type()));
  const double scale = x.type().scales->scale[0];
  const Val dividend = integers_of(x), given = integers_of(y);
  // Nothing is promised of quotients by 0, but for INTDIV they are an error.
  const Val divisor = b.select(b.binary(tosa::op::equal, given, b.like(given, 0.0)), b.like(given, 1.0), given);
  const Val quotient = toward == Toward::below ? functions::floor_quotient(dividend, divisor)
                                               : b.binary(tosa::op::intdiv, dividend, divisor);
  return {of_scale(quotient, 1), of_scale(b.sub(dividend, b.mul(quotient, divisor)), scale)};
}

// In units of divisor / 2^k the quotient is all but the last k bits, and what is left over are these. Of 22 bits in
// all: what differs from a whole quotient by no more than the rounding of f32 is one.
Division by_number(Builder& b, Val x, double divisor, Toward toward) {
  const double scale = x.type().scales->scale[0], size = std::fabs(divisor);
  if (!(size > 0) || std::isinf(size)) b.refuse("quantise.division", "a quotient by " + std::to_string(divisor));
  const double ratio = scale / size, reach = std::max(largest_integer(b.graph(), x.id()) * ratio, 0x1p-20);
  const double bits = std::floor(std::min({std::log2(0x1p22 / reach), std::log2(0x1p28 / ratio), 22.0}));
  if (!(bits >= 1)) b.refuse("quantise.division", "a quotient of " + to_string(x.type()) + " that 22 bits do not hold");
  const auto k = static_cast<int>(bits);
  const double unit = std::ldexp(size, -k);
  const Val y = integers_of(b.rescale(x, {DType::i32, x.shape(), Scales{{unit}, {0}}}));
  const auto signed_as = [&](Val v) {
    return b.select(b.binary(tosa::op::greater, b.like(y, 0.0), y), negative(v), v);
  };
  const bool turned = divisor < 0;
  const Val units = toward == Toward::zero ? signed_as(y) : turned ? negative(y) : y;
  // Half a quotient less, rounded, is rounded down; every Ethos-U has shifts that round.
  const Val shift = b.scalar(static_cast<double>(k), DType::i32);
  Val quotient = b.binary(tosa::op::arithmetic_right_shift, b.sub(units, b.like(units, std::ldexp(1.0, k - 1))), shift,
                          {{"round", true}});
  Val rest = b.sub(units, b.binary(tosa::op::logical_left_shift, quotient, shift));
  if (toward == Toward::zero) {
    quotient = signed_as(quotient), rest = signed_as(rest);
    if (turned) quotient = negative(quotient);
  } else if (turned) {
    rest = negative(rest);
  }
  return {of_scale(quotient, 1), of_scale(rest, unit)};
}

}  // namespace

std::optional<Division> divide_quantised(Builder& b, const Call& call, Toward toward) {
  using promotion::Operand;
  const Operand x = Operand::of(call, "self"), y = Operand::of(call, "other");
  const auto is_quantised = [](const Operand& o) { return o.tensor && o.tensor->type().quantised(); };
  if (!is_quantised(x) && !is_quantised(y)) return std::nullopt;
  if (!is_quantised(x) || (y.tensor && !is_quantised(y)))
    b.refuse("quantise.division", "a quotient of a quantised tensor and one that is not");
  const Val dividend = b.as_i32(*x.tensor);
  if (y.tensor) return by_tensor(b, dividend, b.as_i32(*y.tensor), toward);
  return by_number(b, dividend, y.number, toward);
}

}  // namespace tosaic
