// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/division.h"
#include "ops/lowering/promotion.h"
#include "ops/lowering/quantised_division.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (const auto d = divide_quantised(b, call, Toward::below)) return d->quotient;
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::floor_quotient(p.values[0], p.values[1]));
}
}  // namespace

AtenOp aten_floor_divide() {
  return {
      .schemas = {"floor_divide(Tensor self, Tensor other) -> Tensor",
                  "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
                  "floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
      .summary = "self / other, rounded down",
      .rule = Rule::sum,
      .lower = {lower},
      .domain = {"u(-9,9,24), u(0.5,4,24)",
                 "s(-60,60,41), s(-60,60,41) # half=off: a whole quotient may lie on either side of the rounded one",
                 "i(-20,20,24), i(1,6,24)", "u(-9,9,24), 2.5", "Scalar: u(-9,9,24), -2.5", "Scalar: i(-20,20,24), 3"}};
}
}  // namespace tosaic
