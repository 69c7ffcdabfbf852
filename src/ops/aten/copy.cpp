// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val self = call.tensor("self"), source = call.tensor("src");
  if (!source.type().quantised()) source = b.cast(source, self.dtype());
  return b.broadcast_to(source, Shape(self.shape().sizes()));
}
}  // namespace

AtenOp aten_copy() {
  return {.schemas = {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
                      "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"},
          .summary = "the second tensor, in the shape and dtype of the first",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(2,3), x(2,3)", "x(2,3), x(3)", "x(2,3), i(-5,5,2,3)"}};
}
}  // namespace tosaic
