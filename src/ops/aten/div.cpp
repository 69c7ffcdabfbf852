// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x * (1 / y), as the specification advises (spec INTDIV), unless its rounding shows.
Val quotient(Builder& b, Val x, const promotion::Operand& y) {
  const bool is_quantised = x.type().quantised() || (y.tensor && y.tensor->type().quantised());
  if (b.exact() && !is_quantised) {
    Val a = promotion::as_float(x), d = y.tensor ? promotion::as_float(*y.tensor) : b.like(a, y.number);
    const DType type = promotion::promoted(a.dtype(), d.dtype());
    return functions::nearest_quotient(b.cast(a, type), b.cast(d, type));
  }
  const Val real = promotion::as_real(x);
  if (!y.tensor) return b.aten(aten::op::mul_Scalar, {real}, {{"other", 1 / y.number}});
  return b.aten(aten::op::mul_Tensor, {real, b.aten(aten::op::reciprocal, {promotion::as_real(*y.tensor)})});
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  auto y = promotion::Operand::of(call, "other");
  if (!call.has("rounding_mode")) return quotient(b, x, y);
  auto floor_quotient = [&](Val numerator, std::optional<Val> divisor) {
    if (divisor) return b.aten(aten::op::floor_divide, {numerator, *divisor});
    return b.aten(aten::op::floor_divide_Scalar, {numerator}, {{"other", promotion::scalar_attribute(call, "other")}});
  };
  if (call.text("rounding_mode") == "floor") return floor_quotient(x, y.tensor);
  const bool integers = is_integer(x.dtype()) && !x.type().quantised() &&
                        (y.tensor ? is_integer(y.tensor->dtype()) && !y.tensor->type().quantised() : !y.is_float);
  if (integers) {  // what is left over is taken off first; a magnitude would not hold the least integer's
    if (y.tensor)
      return floor_quotient(b.aten(aten::op::sub_Tensor, {x, b.aten(aten::op::fmod_Tensor, {x, *y.tensor})}), y.tensor);
    const Attr divisor = promotion::scalar_attribute(call, "other");
    return floor_quotient(b.aten(aten::op::sub_Tensor, {x, b.aten(aten::op::fmod_Scalar, {x}, {{"other", divisor}})}),
                          {});
  }
  // sign(x) sign(y) floor(|x| / |y|)
  auto with = [&](Operator op, Val v) { return b.aten(op, {v}); };
  Val size = with(aten::op::abs, x), sign = with(aten::op::sign, x);
  if (!y.tensor) {
    // The divisor's sign goes to the quotient's: floor(-q) of the magnitude would round the other way.
    Attr magnitude = y.is_float ? Attr{std::fabs(y.number)} : Attr{static_cast<std::int64_t>(std::fabs(y.number))};
    size = b.aten(aten::op::floor_divide_Scalar, {size}, {{"other", magnitude}});
    if (y.number < 0) sign = with(aten::op::neg, sign);
    return b.aten(aten::op::mul_Tensor, {size, sign});
  }
  size = floor_quotient(size, with(aten::op::abs, *y.tensor));
  sign = b.aten(aten::op::mul_Tensor, {sign, with(aten::op::sign, *y.tensor)});
  return b.aten(aten::op::mul_Tensor, {size, sign});
}

std::optional<Node> core(const CoreCall& call) {
  return call.schema.name == "divide" ? std::optional(call.renamed("div")) : std::nullopt;
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
                 "x(4), 0.0 # integer=quantise.factor: infinity is no scale",
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
                 "Tensor_mode: i(-2147483648,-2147483647,2), i(2,3,2), rounding_mode='trunc'",
                 "Scalar_mode: i(-2147483648,-2147483647,2), 2, rounding_mode='trunc'",
                 "Scalar_mode: u(-9,9,24), 2.5, rounding_mode='floor'",
                 "Scalar_mode: u(-9,9,24), -2.5, rounding_mode='trunc'",
                 "Scalar_mode: i(-20,20,24), 3, rounding_mode='trunc'",
                 "divide.Tensor: x(2,3,4), u(0.5,4,2,3,4)",
                 "divide.Scalar: x(2,3,4), 3.0",
                 "divide.Tensor_mode: u(-9,9,24), u(0.5,4,24), rounding_mode='floor'",
                 "divide.Scalar_mode: u(-9,9,24), 2.5, rounding_mode='floor'"},
      .core = core,
      .out_overloads = {{"div.Tensor", "out"}, {"div.Tensor_mode", "out_mode"}},
      .has_exact_form = true};
}
}  // namespace tosaic
