// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val quotient = b.aten(aten::op::div_Tensor, {call.tensor("tensor1"), call.tensor("tensor2")});
  return b.aten(aten::op::add_Tensor, {call.tensor("self"), quotient},
                {{"alpha", promotion::scalar_attribute(call, "value")}});
}
}  // namespace

AtenOp aten_addcdiv() {
  return {.schemas = {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                      "addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"},
          .summary = "self + value * tensor1 / tensor2",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4), u(0.5,2,4)", "x(2,3), x(2,3), u(0.5,2,3), value=0.5"},
          .has_exact_form = true};
}
}  // namespace tosaic
