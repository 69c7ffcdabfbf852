// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return b.binary(tosa::op::equal, p.values[0], p.values[1]);
}
}  // namespace

AtenOp aten_eq() {
  return {
      .schemas = {"eq.Tensor(Tensor self, Tensor other) -> Tensor", "eq.Scalar(Tensor self, Scalar other) -> Tensor"},
      .summary = "self == other, a bool tensor",
      .rule = Rule::sum,
      .lower = {lower},
      .domain = {"x(2,3,4), x(2,3,4)", "i(0,3,2,3,4), i(0,3,3,1)", "Scalar: e(28), 0.5", "Scalar: i(0,3,12), 1.0",
                 "b(6), b(6)", "Scalar: x(2,3,4), 0.5", "Scalar: i(0,3,12), 1", "Scalar: e(28), 0"}};
}
}  // namespace tosaic
