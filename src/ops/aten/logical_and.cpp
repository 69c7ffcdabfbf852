// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = b.cast(call.tensor("self"), DType::boolean), y = b.cast(call.tensor("other"), DType::boolean);
  return b.binary(tosa::op::logical_and, x, y);
}
}  // namespace

AtenOp aten_logical_and() {
  return {.schemas = {"logical_and(Tensor self, Tensor other) -> Tensor"},
          .summary = "true where both are not 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"b(2,3,4), b(2,3,4)", "b(2,3,4), b(3,1)", "i(0,3,12), i(0,3,12)", "f(28), b(28)"}};
}
}  // namespace tosaic
