// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
// From the nearer end, so that weight 1 gives exactly `end`.
Vals lower(Builder& b, const Call& call) {
  Val start = call.tensor("self"), end = call.tensor("end");
  Val span = b.aten(aten::op::sub_Tensor, {end, start});
  if (call.overload() == "Tensor")
    return b.aten(aten::op::add_Tensor, {start, b.aten(aten::op::mul_Tensor, {span, call.tensor("weight")})});
  const double weight = call.number("weight");
  if (weight < 0.5) return b.aten(aten::op::add_Tensor, {start, span}, {{"alpha", weight}});
  return b.aten(aten::op::sub_Tensor, {end, span}, {{"alpha", 1 - weight}});
}
}  // namespace

AtenOp aten_lerp() {
  return {.schemas = {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
                      "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
                      "lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
                      "lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)"},
          .summary = "self + weight * (end - self)",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4), 0.25", "x(2,3,4), x(4), 0.75", "Tensor: x(2,3,4), x(2,3,4), u(0,1,4)"}};
}
}  // namespace tosaic
