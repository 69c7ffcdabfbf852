// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.overload() == "default")
    return b.aten(aten::op::clamp, {call.tensor("self")}, {{"max", promotion::scalar_attribute(call, "max")}});
  auto p = promotion::promote(b, call, {"self", "max"});
  return p.finished(b.minimum(p.values[0], p.values[1]));
}
}  // namespace

AtenOp aten_clamp_max() {
  return {
      .schemas = {"clamp_max(Tensor self, Scalar max) -> Tensor", "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
                  "clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
                  "clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)"},
      .summary = "x lowered to at most max",
      .rule = Rule::transparent,
      .overload_rules = {{"Tensor", Rule::joined}},
      .lower = {lower},
      .domain = {"x(2,3,4), 0.25", "i(-9,9,12), 2", "Tensor: x(2,3,4), x(3,1)"}};
}
}  // namespace tosaic
