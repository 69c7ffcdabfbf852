// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// A zero's sign shows in its reciprocal. A NaN counts as positive.
Val is_negative(Val x) {
  Builder& b = x.builder();
  Val zero = functions::equal(x, b.like(x, 0.0));
  return functions::less(b.select(zero, b.unary(tosa::op::reciprocal, x), x), 0.0);
}

Vals lower(Builder& b, const Call& call) {
  if (call.overload() == "Scalar") {
    Val x = promotion::as_float(call.tensor("self")), size = b.unary(tosa::op::abs, x);
    return std::signbit(call.number("other")) ? b.negate(size) : size;
  }
  auto p = promotion::promote(b, call, {"self", "other"});
  if (!is_float(p.result)) p.result = DType::f32;
  Val size = b.unary(tosa::op::abs, promotion::as_float(p.values[0]));
  return p.finished(b.select(is_negative(promotion::as_float(p.values[1])), b.negate(size), size));
}
// In other calls, for integers, whose zero has no sign: it counts as positive.
Vals composed(Builder& b, const Call& call) {
  const Val size = calls::abs(promotion::as_real(call.tensor("self"))), sign = promotion::as_real(call.tensor("other"));
  return calls::where(b.aten(aten::op::lt_Scalar, {sign}, {{"other", 0.0}}), calls::unary(aten::op::neg, size), size);
}
}  // namespace

AtenOp aten_copysign() {
  return {.schemas = {"copysign.Tensor(Tensor self, Tensor other) -> Tensor",
                      "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
                      "copysign_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                      "copysign_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
          .summary = "the size of self with the sign of other",
          .rule = Rule::pointwise,
          .overload_rules = {{"Tensor", Rule::inside}},
          .lower = {lower, composed},
          .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "x(28), f(28)", "f(28), x(28)", "i(-9,9,12), i(-3,4,12)",
                     "i(-9,9,12), x(12)", "Scalar: x(2,3,4), -2.5", "Scalar: f(28), -1.0", "Scalar: i(-9,9,6), 1"}};
}
}  // namespace tosaic
