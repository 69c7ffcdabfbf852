// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numbers>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The angle in the first octant, unfolded by three reflections. A zero of either sign counts as positive.
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  Val y = promotion::as_float(p.values[0]), x = promotion::as_float(p.values[1]);
  Val height = b.unary(tosa::op::abs, y), width = b.unary(tosa::op::abs, x);
  Val steep = functions::greater(height, width);
  Val larger = b.maximum(height, width), smaller = b.minimum(height, width), one = b.like(x, 1.0);
  // At the origin and in the corners at infinity the quotient is 0 / 0 or inf / inf: the tangent is 0 and 1 there.
  Val corner = functions::equal(smaller, b.like(x, std::numeric_limits<double>::infinity()));
  Val origin = functions::equal(larger, b.like(x, 0.0));
  Val tangent = b.mul(smaller, b.unary(tosa::op::reciprocal, b.select(origin, one, larger)));
  Val angle = functions::arctangent_of_unit(b.select(corner, one, tangent));
  angle = b.select(steep, b.sub(b.like(x, std::numbers::pi / 2), angle), angle);
  angle = b.select(functions::less(x, 0.0), b.sub(b.like(x, std::numbers::pi), angle), angle);
  return functions::with_sign_of(y, angle);
}

// In other calls, for integers: the arc tangent of e^d, where d is the difference of the logarithms, which have the
// same precision whatever the sizes, and a quotient has not. A height of zero is less than any width.
Vals composed(Builder& b, const Call& call) {
  constexpr double least_height = 1e-30, least_width = 1e-20;
  Val y = promotion::as_real(call.tensor("self")), x = promotion::as_real(call.tensor("other"));
  Val height = calls::log(calls::at_least(calls::abs(y), least_height));
  Val width = calls::log(calls::at_least(calls::abs(x), least_width));
  const auto negative = [&](Val v) { return b.aten(aten::op::lt_Scalar, {v}, {{"other", 0.0}}); };
  const auto minus = [&](Val v) { return calls::unary(aten::op::neg, v); };
  // What is left of the angle in the middle of the quadrant.
  Val turned = calls::unary(aten::op::atan, calls::unary(aten::op::tanh, calls::mul(calls::sub(height, width), 0.5)));
  Val angle = calls::where(negative(x), calls::add(minus(turned), 3 * std::numbers::pi / 4),
                           calls::add(turned, std::numbers::pi / 4));
  return calls::where(negative(y), minus(angle), angle);
}
}  // namespace

AtenOp aten_atan2() {
  return {
      .schemas = {"atan2(Tensor self, Tensor other) -> Tensor", "atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "arctan2(Tensor self, Tensor other) -> Tensor",
                  "arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
      .summary = "the angle of the point (other, self), in (-pi, pi]",
      .rule = Rule::inside,
      .lower = {lower, composed},
      .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x()", "e(28), u(0.5,2,1)", "i(-3,4,24), i(1,4,24)",
                 "arctan2.default: x(2,3,4), x(2,3,4)"},
      .bounds = {{-std::numbers::pi, std::numbers::pi}}};
}
}  // namespace tosaic
