// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(b.maximum(p.values[0], p.values[1]));
}

std::optional<Node> core(const CoreCall& call) {
  return call.schema.name == "max" ? std::optional(call.call(aten::op::maximum, call.node.inputs)) : std::nullopt;
}
}  // namespace

AtenOp aten_maximum() {
  return {.schemas = {"maximum(Tensor self, Tensor other) -> Tensor", "max.other(Tensor self, Tensor other) -> Tensor"},
          .summary = "the larger of two elements; NaN wins",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "e(28), x()", "i(-9,9,12), i(-9,9,12)",
                     "i(-9,9,12), x(12)", "b(6), b(6)", "max.other: x(2,3), x(3)"},
          .core = core};
}
}  // namespace tosaic
