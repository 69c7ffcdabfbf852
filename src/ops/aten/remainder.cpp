// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/division.h"
#include "ops/lowering/promotion.h"
#include "ops/lowering/quantised_division.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (const auto d = divide_quantised(b, call, Toward::below)) return d->remainder;
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::floor_remainder(p.values[0], p.values[1]));
}
}  // namespace

AtenOp aten_remainder() {
  return {
      .schemas = {"remainder.Tensor(Tensor self, Tensor other) -> Tensor",
                  "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
                  "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                  "remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
      .summary = "self - other * floor(self / other): the sign is other's",
      .rule = Rule::sum,
      .overload_rules = {{"Scalar_Tensor", Rule::float_only}},
      .lower = {lower},
      .domain = {
          "u(-9,9,24), u(0.5,4,24)", "u(-9,9,24), u(-4,-0.5,24)",
          "Scalar: u(-300,300,64), 0.7 # atol=3e-6 half=off: 0.7 is rounded first, and PyTorch divides by the double",
          "i(-20,20,24), i(1,6,24)", "i(-20,20,24), i(-6,-1,24)", "Scalar: u(-9,9,24), 2.5", "Scalar: i(-20,20,24), 3",
          "Scalar_Tensor: 7.5, u(0.5,4,24)"}};
}
}  // namespace tosaic
