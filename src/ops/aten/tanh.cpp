// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.unary(tosa::op::tanh, promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_tanh() {
  return {.schemas = {"tanh(Tensor self) -> Tensor", "tanh_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "hyperbolic tangent",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-10,10,64)", "e(28)", "b(6)"}};
}
}  // namespace tosaic
