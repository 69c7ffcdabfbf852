// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val product = b.aten(aten::op::mul_Tensor, {call.tensor("tensor1"), call.tensor("tensor2")});
  return b.aten(aten::op::add_Tensor, {call.tensor("self"), product},
                {{"alpha", promotion::scalar_attribute(call, "value")}});
}
}  // namespace

AtenOp aten_addcmul() {
  return {.schemas = {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                      "addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)"},
          .summary = "self + value * tensor1 * tensor2",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4), x(4)", "x(2,3), x(2,3), x(3), value=0.5",
                     "i(-9,9,6), i(-9,9,6), i(-9,9,6), value=2"}};
}
}  // namespace tosaic
