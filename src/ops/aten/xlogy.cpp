// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// 0 wherever self is 0, but for a NaN in other.
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  if (!is_float(p.result)) p.result = DType::f32;
  const Val x = promotion::as_float(p.values[0]), y = promotion::as_float(p.values[1]);
  const Val none = functions::both(functions::equal(x, b.like(x, 0.0)), functions::equal(y, y));
  const Val product = b.mul(x, b.unary(tosa::op::log, y));
  return p.finished(b.select(none, b.like(product, 0.0), product));
}

// In other calls, for integers.
Vals composed(Builder& b, const Call& call) {
  const auto real = [&](const char* name) -> std::optional<Val> {
    const auto operand = promotion::Operand::of(call, name);
    return operand.tensor ? std::optional(promotion::as_real(*operand.tensor)) : std::nullopt;
  };
  const auto x = real("self"), y = real("other");
  if (!y) return calls::mul(x.value(), std::log(call.number("other")));
  const Val log = calls::log(*y);
  if (!x) return calls::mul(log, call.number("self"));
  const Val none = b.aten(aten::op::eq_Scalar, {*x}, {{"other", 0.0}});
  return calls::where(none, b.scalar(0.0, DType::f32), calls::mul(*x, log));
}
}  // namespace

AtenOp aten_xlogy() {
  return {
      .schemas = {"xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
                  "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
                  "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
                  "xlogy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "xlogy_.Scalar_Other(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                  "special_xlogy(Tensor self, Tensor other) -> Tensor",
                  "special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
                  "special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor"},
      .summary = "self * log(other), and 0 where self is 0",
      .rule = Rule::inside,
      .lower = {lower, composed},
      .domain = {"x(2,3,4), u(0.1,4,2,3,4)", "i(0,3,12), u(0,4,12)", "f(28), f(28)", "Scalar_Self: 2.5, u(0.1,4,12)",
                 "Scalar_Other: x(2,3,4), 3.0", "special_xlogy.default: x(2,3,4), u(0.1,4,3,4)",
                 "special_xlogy.self_scalar: -1.5, u(0.1,4,12)", "special_xlogy.other_scalar: x(2,3,4), 0.5"}};
}
}  // namespace tosaic
