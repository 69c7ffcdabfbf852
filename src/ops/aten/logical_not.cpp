// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.unary(tosa::op::logical_not, b.cast(call.tensor("self"), DType::boolean));
}
}  // namespace

AtenOp aten_logical_not() {
  return {.schemas = {"logical_not(Tensor self) -> Tensor"},
          .summary = "true where x is 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"b(2,3,4)", "i(0,3,12)", "f(28)"}};
}
}  // namespace tosaic
