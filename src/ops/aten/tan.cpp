// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  return b.mul(b.unary(tosa::op::sin, x), b.unary(tosa::op::reciprocal, b.unary(tosa::op::cos, x)));
}
}  // namespace

AtenOp aten_tan() {
  return {.schemas = {"tan(Tensor self) -> Tensor", "tan_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "tangent of radians",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(-1.5,1.5,2,3,4)", "s(-10,10,64)"}};
}
}  // namespace tosaic
