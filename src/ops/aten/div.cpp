// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_functions.h"
#include "ops/aten_promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x * (1 / y), as the specification advises (spec INTDIV).
Val quotient(Builder& b, const promotion::Operand& x, const promotion::Operand& y, Val numerator) {
  numerator = promotion::as_float(numerator);
  if (!y.tensor) return b.aten("aten.mul.Scalar", {numerator}, {{"other", 1 / y.number}});
  Val divisor = promotion::as_float(*y.tensor);
  const DType dtype = promotion::result_type({{numerator}, {divisor}});
  if (x.tensor && is_float(numerator.dtype())) numerator = b.cast(numerator, dtype), divisor = b.cast(divisor, dtype);
  return b.aten("aten.mul.Tensor", {numerator, b.aten("aten.reciprocal.default", {divisor})});
}

Vals lower(Builder& b, const Call& call) {
  auto x = promotion::Operand::of(call, "self"), y = promotion::Operand::of(call, "other");
  Val numerator = x.tensor ? *x.tensor : b.scalar(x.number, DType::f32);
  if (!call.has("rounding_mode")) return quotient(b, x, y, numerator);
  auto p = promotion::promote(b, call, {"self", "other"});
  if (call.text("rounding_mode") == "floor")
    return p.finished(b.aten("aten.floor_divide.default", {p.values[0], p.values[1]}));
  if (!is_float(p.result)) return p.finished(functions::truncating_division(p.values[0], p.values[1]).quotient);
  // sign(x) sign(y) floor(|x| / |y|)
  auto with = [&](const char* op, Val v) { return b.aten(op, {v}); };
  Val size = b.aten("aten.floor_divide.default",
                    {with("aten.abs.default", p.values[0]), with("aten.abs.default", p.values[1])});
  Val sign =
      b.aten("aten.mul.Tensor", {with("aten.sign.default", p.values[0]), with("aten.sign.default", p.values[1])});
  return b.aten("aten.mul.Tensor", {size, sign});
}
}  // namespace

AtenOp aten_div() {
  return {
      .schemas = {"div.Tensor(Tensor self, Tensor other) -> Tensor", "div.Scalar(Tensor self, Scalar other) -> Tensor",
                  "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                  "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
                  "div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                  "div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
                  "div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)",
                  "divide.Tensor(Tensor self, Tensor other) -> Tensor",
                  "divide.Scalar(Tensor self, Scalar other) -> Tensor",
                  "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                  "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
                  "divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                  "divide_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
                  "divide_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)"},
      .summary = "self / other; with rounding_mode the quotient is rounded down (floor) or toward 0 (trunc)",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(2,3,4), u(0.5,4,2,3,4)",
                 "x(2,3,4), u(0.5,4,3,1)",
                 "x(2,3,4), 3.0",
                 "i(-9,9,12), i(1,5,12)",
                 "f(28), x()",
                 "x(4), 0.0",
                 "Scalar: x(2,3,4), 3.0",
                 "Scalar: i(-9,9,12), 2",
                 "Tensor_mode: u(-9,9,24), u(0.5,4,24), rounding_mode='floor'",
                 "Tensor_mode: u(-9,9,24), u(-4,-0.5,24), rounding_mode='floor'",
                 "Tensor_mode: i(-20,20,24), i(1,6,24), rounding_mode='floor'",
                 "Tensor_mode: i(-20,20,24), i(-6,-1,24), rounding_mode='floor'",
                 "Tensor_mode: s(-60,60,41), 3.0, rounding_mode='floor'",
                 "Tensor_mode: u(-9,9,24), u(0.5,4,24), rounding_mode='trunc'",
                 "Tensor_mode: i(-20,20,24), i(1,6,24), rounding_mode='trunc'",
                 "Tensor_mode: x(2,3), x(2,3), rounding_mode=None # half=off: the divisor may be near 0",
                 "Scalar_mode: u(-9,9,24), 2.5, rounding_mode='floor'",
                 "Scalar_mode: u(-9,9,24), -2.5, rounding_mode='trunc'",
                 "Scalar_mode: i(-20,20,24), 3, rounding_mode='trunc'",
                 "divide.Tensor: x(2,3,4), u(0.5,4,2,3,4)",
                 "divide.Scalar: x(2,3,4), 3.0",
                 "divide.Tensor_mode: u(-9,9,24), u(0.5,4,24), rounding_mode='floor'",
                 "divide.Scalar_mode: u(-9,9,24), 2.5, rounding_mode='floor'"}};
}
}  // namespace tosaic
