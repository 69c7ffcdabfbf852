// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  std::vector<promotion::Operand> parts;
  int axis = 0;
  for (const auto& t : call.tensors("tensors")) {
    axis = call.axis("dim", t->rank() + 1);
    parts.push_back({b.unsqueeze(*t, axis)});
  }
  if (parts.empty()) b.refuse("aten.stack.empty", "there is nothing to stack");
  return b.concat(promotion::promote(b, parts, promotion::Compute::as_is).values, axis);
}
}  // namespace

AtenOp aten_stack() {
  return {.schemas = {"stack(Tensor[] tensors, int dim=0) -> Tensor"},
          .summary = "stacks tensors along a new dim",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"[x(2,3), x(2,3)], 0", "[x(2,3), x(2,3), x(2,3)], -1", "[x(4), x(4)], 1", "[x(4), b(4)], 1"}};
}
}  // namespace tosaic
