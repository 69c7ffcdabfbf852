// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.unary(tosa::op::exp, promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_exp() {
  return {.schemas = {"exp(Tensor self) -> Tensor", "exp_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "e to the power x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-87,88,64)", "e(28)", "i(-5,5,6)"}};
}
}  // namespace tosaic
