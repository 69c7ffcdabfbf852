// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.clamp(call.tensor("self"), 0.0, 6.0); }

std::optional<Node> core(const CoreCall& call) {
  return call.call(aten::op::hardtanh, {call.operand(0)}, {{"min_val", std::int64_t{0}}, {"max_val", std::int64_t{6}}});
}
}  // namespace

AtenOp aten_relu6() {
  return {.schemas = {"relu6(Tensor self) -> Tensor", "relu6_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x clamped to [0, 6]",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"u(-4,10,2,3,4)", "e(28)", "i(-5,10,6)"},
          .core = core};
}
}  // namespace tosaic
