// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), mask = b.cast(call.tensor("mask"), DType::boolean), value;
  if (call.overload() == "Scalar")
    value = b.like(x, call.number("value"));
  else
    value = call.tensor("value").type().quantised() ? call.tensor("value") : b.cast(call.tensor("value"), x.dtype());
  return b.select(mask, value, x);
}
}  // namespace

AtenOp aten_masked_fill() {
  return {.schemas = {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
                      "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
                      "masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
                      "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)"},
          .summary = "value where mask holds, self elsewhere",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {
              "x(2,3,4), b(3,4), 0.5",
              "x(2,3,4), b(2,1,4), -inf # integer=target.unsupported: what only leaves the program is masked as floats",
              "i(-9,9,12), b(12), 3", "b(6), b(6), 1", "Tensor: x(2,3,4), b(3,4), x()"}};
}
}  // namespace tosaic
