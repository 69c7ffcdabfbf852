// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Vectors and scalars become what the direction needs: vstack rows, dstack planes.
Vals lower(Builder& b, const Call& call) {
  const auto& name = call.schema().name;
  std::vector<promotion::Operand> parts;
  int axis = 0;
  for (const auto& t : call.tensors("tensors")) {
    Val x = *t;
    if (x.rank() == 0) x = b.reshape(x, {1});
    if (name == "vstack" && x.rank() == 1) x = b.unsqueeze(x, 0);
    if (name == "column_stack" && x.rank() == 1) x = b.unsqueeze(x, 1);
    if (name == "dstack") {
      if (x.rank() == 1) x = b.unsqueeze(x, 0);
      if (x.rank() == 2) x = b.unsqueeze(x, 2);
    }
    axis = name == "vstack" ? 0 : name == "dstack" ? 2 : std::min(x.rank() - 1, 1);
    parts.push_back({x});
  }
  if (parts.empty()) b.refuse("aten.stack.empty", "there is nothing to stack");
  return b.concat(promotion::promote(b, parts, promotion::Compute::as_is).values, axis);
}
}  // namespace

AtenOp aten_hstack() {
  return {.schemas = {"hstack(Tensor[] tensors) -> Tensor", "vstack(Tensor[] tensors) -> Tensor",
                      "dstack(Tensor[] tensors) -> Tensor", "column_stack(Tensor[] tensors) -> Tensor"},
          .summary = "concatenates tensors as columns, rows or planes",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"[x(2,3), x(2,1)]", "[x(3), x(2)]", "[b(2,1), x(2,3)]", "vstack.default: [x(3), x(2,3)]",
                     "dstack.default: [x(2,3), x(2,3)]", "column_stack.default: [x(3), x(3,2)]"}};
}
}  // namespace tosaic
