// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"}, promotion::Compute::as_is);
  if (is_float(p.result)) b.refuse("aten.bitwise-float", "bitwise operators take integers and booleans");
  return b.binary(p.result == DType::boolean ? tosa::op::logical_and : tosa::op::bitwise_and, p.values[0], p.values[1]);
}
}  // namespace

AtenOp aten_bitwise_and() {
  return {.schemas = {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
                      "bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
                      "bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                      "bitwise_and_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                      "bitwise_and_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
          .summary = "bits where both are set; on bool tensors the logical form",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,2,3,4), i(-9,9,3,1)", "b(2,3,4), b(2,3,4)", "i8(-100,100,6), i8(-100,100,6)",
                     "b(6), i(0,9,6)", "Scalar: i(-9,9,12), 5", "Scalar_Tensor: 5, i(-9,9,12)"}};
}
}  // namespace tosaic
