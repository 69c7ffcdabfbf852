// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.overload() == "default")
    return b.aten(aten::op::clamp, {call.tensor("self")}, {{"min", promotion::scalar_attribute(call, "min")}});
  auto p = promotion::promote(b, call, {"self", "min"});
  return p.finished(b.maximum(p.values[0], p.values[1]));
}
}  // namespace

AtenOp aten_clamp_min() {
  return {
      .schemas = {"clamp_min(Tensor self, Scalar min) -> Tensor", "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
                  "clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
                  "clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)"},
      .summary = "x raised to at least min",
      .rule = Rule::transparent,
      .overload_rules = {{"Tensor", Rule::joined}},
      .lower = {lower},
      .domain = {"x(2,3,4), 0.25", "i(-9,9,12), 2", "Tensor: x(2,3,4), x(3,1)"}};
}
}  // namespace tosaic
