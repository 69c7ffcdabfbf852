// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const std::int64_t offset = call.integer("diagonal");
  if (x.rank() == 1) return b.aten(aten::op::diag_embed, {x}, {{"offset", offset}});
  if (x.rank() != 2) b.refuse("aten.diag.rank", "a tensor of shape " + to_string(x.shape()) + " is no matrix");
  return b.aten(aten::op::diagonal_copy, {x}, {{"offset", offset}});
}
}  // namespace

AtenOp aten_diag() {
  return {.schemas = {"diag(Tensor self, int diagonal=0) -> Tensor"},
          .summary = "the diagonal of a matrix, or the matrix that has a vector on its diagonal",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3)", "x(3), -2", "x(3,5), 1", "x(4,2), -1", "i(-9,9,3,3)"}};
}
}  // namespace tosaic
