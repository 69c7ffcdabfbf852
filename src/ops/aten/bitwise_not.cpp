// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.dtype() == DType::u8) return b.cast(b.unary(tosa::op::bitwise_not, b.cast(x, DType::i32)), DType::u8);
  return b.unary(x.dtype() == DType::boolean ? tosa::op::logical_not : tosa::op::bitwise_not, x);
}
}  // namespace

AtenOp aten_bitwise_not() {
  return {.schemas = {"bitwise_not(Tensor self) -> Tensor", "bitwise_not_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "all bits inverted; on bool tensors the logical form",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,12)", "b(6)", "i8(-100,100,6)", "u8(0,256,24)"}};
}
}  // namespace tosaic
