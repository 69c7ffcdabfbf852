// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::weighted_sum(p.values[0], p.values[1], call.number("alpha")));
}
}  // namespace

AtenOp aten_add() {
  return {.schemas = {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                      "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                      "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
                      "add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)"},
          .summary = "self + alpha * other, with broadcasting",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "x(4), x(2,3,4), alpha=2", "x(2,3,4), 2.5", "e(28), x()",
                     "i(-9,9,12), i(-9,9,12)", "i(-9,9,12), 2.5", "i(-9,9,12), i(-9,9,12), alpha=-3", "b(6), b(6)",
                     "i8(-100,100,6), i8(-100,100,6)", "x(3), i(0,5,3)", "b(4), i(-3,3,4)", "x(2,3), b(3)",
                     "Scalar: x(2,3,4), 2.5", "Scalar: x(2,3,4), 2, 3", "Scalar: i(-9,9,12), 2"},
          .out_overloads = {{"add.Tensor", "out"}}};
}
}  // namespace tosaic
