// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) b.refuse("aten.glu-rank", "glu of a scalar");
  const std::int64_t axis = call.axis("dim", x.rank()), size = x.dim(static_cast<int>(axis));
  if (size % 2) b.refuse("aten.glu-odd", "glu of a dim of odd size " + std::to_string(size));
  auto part = [&](std::int64_t start) {
    return b.aten(aten::op::slice_Tensor, {x}, {{"dim", axis}, {"start", start}, {"end", start + size / 2}});
  };
  Val values = part(0), gates = part(size / 2);
  return b.aten(aten::op::mul_Tensor, {values, b.aten(aten::op::sigmoid, {gates})});
}
}  // namespace

AtenOp aten_glu() {
  return {.schemas = {"glu(Tensor self, int dim=-1) -> Tensor"},
          .summary = "the first half of x times the sigmoid of the second half, along dim",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,6,4), 1", "x(4), 0"}};
}
}  // namespace tosaic
