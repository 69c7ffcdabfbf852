// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.unary(tosa::op::sigmoid, promotion::as_float(call.tensor("self")));
}
}  // namespace

AtenOp aten_sigmoid() {
  return {.schemas = {"sigmoid(Tensor self) -> Tensor", "sigmoid_(Tensor(a!) self) -> Tensor(a!)",
                      "special_expit(Tensor self) -> Tensor"},
          .summary = "1 / (1 + exp(-x))",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-20,20,64)", "e(28)", "i(-5,5,6)", "special_expit.default: x(2,3,4)"}};
}
}  // namespace tosaic
