// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }

std::optional<Node> core(const CoreCall& call) { return call.call(aten::op::clone, {call.operand(0)}); }
}  // namespace

AtenOp aten_contiguous() {
  return {.schemas = {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)"},
          .summary = "self in dense row-major memory, which every tensor is here",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)"},
          .core = core};
}
}  // namespace tosaic
