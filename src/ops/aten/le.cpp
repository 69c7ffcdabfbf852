// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return b.binary(tosa::op::greater_equal, p.values[1], p.values[0]);
}
}  // namespace

AtenOp aten_le() {
  return {
      .schemas = {"le.Tensor(Tensor self, Tensor other) -> Tensor", "le.Scalar(Tensor self, Scalar other) -> Tensor",
                  "less_equal.Tensor(Tensor self, Tensor other) -> Tensor",
                  "less_equal.Scalar(Tensor self, Scalar other) -> Tensor"},
      .summary = "self <= other, a bool tensor",
      .rule = Rule::sum,
      .lower = {lower},
      .domain = {"x(2,3,4), x(2,3,4)", "i(0,3,2,3,4), i(0,3,3,1)", "Scalar: e(28), 0.5", "Scalar: i(0,3,12), 1.0",
                 "b(6), b(6)", "Scalar: x(2,3,4), 0.5", "Scalar: i(0,3,12), 1", "Scalar: e(28), 0",
                 "less_equal.Tensor: x(2,3,4), x(2,3,4)", "less_equal.Scalar: x(2,3,4), 0.5"}};
}
}  // namespace tosaic
