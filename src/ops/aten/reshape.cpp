// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.reshape(
      x, inferred_shape(b, call.ints(call.schema().name == "reshape" ? "shape" : "size"), x.shape().elements()));
}
}  // namespace

AtenOp aten_reshape() {
  return {.schemas = {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
                      "_reshape_copy(Tensor self, SymInt[] size) -> Tensor"},
          .summary = "the same elements in row-major order under another shape",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4), [4,6]", "x(2,3,4), [-1]", "x(5), [1,5,1]", "i(-9,9,2,3), [3,-1]",
                     "_reshape_copy.default: x(2,6), [3,4]"}};
}
}  // namespace tosaic
