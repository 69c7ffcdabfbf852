// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.mul(x, b.unary(tosa::op::sigmoid, x));
}
}  // namespace

AtenOp aten_silu() {
  return {.schemas = {"silu(Tensor self) -> Tensor", "silu_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x * sigmoid(x)",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-20,20,64)", "e(28)"}};
}
}  // namespace tosaic
