// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.unary(tosa::op::cos, promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_cos() {
  return {.schemas = {"cos(Tensor self) -> Tensor", "cos_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "cosine of radians",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-20,20,64)", "f(28)"}};
}
}  // namespace tosaic
