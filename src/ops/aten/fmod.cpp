// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/division.h"
#include "ops/lowering/promotion.h"
#include "ops/lowering/quantised_division.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (const auto d = divide_quantised(b, call, Toward::zero)) return d->remainder;
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::truncated_remainder(p.values[0], p.values[1]));
}
}  // namespace

AtenOp aten_fmod() {
  return {.schemas = {"fmod.Tensor(Tensor self, Tensor other) -> Tensor",
                      "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
                      "fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                      "fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
          .summary = "self - other * trunc(self / other): the sign is self's",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"u(-9,9,24), u(0.5,4,24)", "u(-9,9,24), u(-4,-0.5,24)", "i(-20,20,24), i(1,6,24)",
                     "i(-20,20,24), i(-6,-1,24)", "Scalar: u(-9,9,24), 2.5", "Scalar: i(-20,20,24), 3"}};
}
}  // namespace tosaic
