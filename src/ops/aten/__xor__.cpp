// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.overload() == "Tensor")
    return b.aten("aten.bitwise_xor.Tensor", {call.tensor("self"), call.tensor("other")});
  return b.aten("aten.bitwise_xor.Scalar", {call.tensor("self")}, {{"other", call.integer("other")}});
}
}  // namespace

AtenOp aten___xor__() {
  return {.schemas = {"__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
                      "__xor__.Scalar(Tensor self, Scalar other) -> Tensor"},
          .summary = "Python's operator on tensors: bitwise_xor",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,12), i(-9,9,12)", "b(6), b(6)", "Scalar: i(-9,9,12), 5"}};
}
}  // namespace tosaic
