// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.unary(x.dtype() == DType::boolean ? "logical_not" : "bitwise_not", x);
}
}  // namespace

AtenOp aten_bitwise_not() {
  return {.schemas = {"bitwise_not(Tensor self) -> Tensor", "bitwise_not_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "all bits inverted; on bool tensors the logical form",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,12)", "b(6)", "i8(-100,100,6)"}};
}
}  // namespace tosaic
