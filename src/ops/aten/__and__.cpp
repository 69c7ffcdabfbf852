// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.overload() == "Tensor")
    return b.aten("aten.bitwise_and.Tensor", {call.tensor("self"), call.tensor("other")});
  return b.aten("aten.bitwise_and.Scalar", {call.tensor("self")}, {{"other", call.integer("other")}});
}
}  // namespace

AtenOp aten___and__() {
  return {.schemas = {"__and__.Tensor(Tensor self, Tensor other) -> Tensor",
                      "__and__.Scalar(Tensor self, Scalar other) -> Tensor"},
          .summary = "Python's operator on tensors: bitwise_and",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,12), i(-9,9,12)", "b(6), b(6)", "Scalar: i(-9,9,12), 5"}};
}
}  // namespace tosaic
