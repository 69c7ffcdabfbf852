// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.unsqueeze(x, call.axis("dim", x.rank() + 1));
}
}  // namespace

AtenOp aten_unsqueeze() {
  return {
      .schemas = {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", "unsqueeze_copy(Tensor self, int dim) -> Tensor"},
      .summary = "inserts a dim of size 1",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(2,3), 0", "x(2,3), -1", "x(2,3), -2", "unsqueeze_copy.default: x(2,3), 1"}};
}
}  // namespace tosaic
