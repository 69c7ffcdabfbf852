// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self"});
  return p.finished(b.unary(tosa::op::abs, p.values[0]));
}
}  // namespace

AtenOp aten_abs() {
  return {.schemas = {"abs(Tensor self) -> Tensor", "abs_(Tensor(a!) self) -> Tensor(a!)",
                      "absolute(Tensor self) -> Tensor", "absolute_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "absolute value",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "e(28)", "i(-9,9,12)", "i8(-9,9,12)", "absolute.default: x(2,3,4)"}};
}
}  // namespace tosaic
