// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.reshape(x, inferred_shape(b, call.ints("size"), x.shape().elements()));
}
}  // namespace

AtenOp aten_view() {
  return {
      .schemas = {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "view_copy(Tensor self, SymInt[] size) -> Tensor",
                  "_unsafe_view(Tensor self, SymInt[] size) -> Tensor"},
      .summary = "the same elements in row-major order under another shape",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(2,3,4), [6,4]", "x(2,3,4), [-1,2]", "x(1,1), []", "view_copy.default: x(8), [2,2,2]",
                 "_unsafe_view.default: x(2,6), [3,-1]"}};
}
}  // namespace tosaic
