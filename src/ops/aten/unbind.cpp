// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  Vals parts;
  for (std::int64_t i = 0; i < x.dim(axis); ++i) parts.push_back(b.squeeze(b.slice_axis(x, axis, i, 1), {axis}));
  return parts;
}
}  // namespace

AtenOp aten_unbind() {
  return {.schemas = {"unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                      "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]"},
          .summary = "the slices along a dim, without that dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,2)", "x(2,3,2), -2", "unbind_copy.int: x(2,3), 1"}};
}
}  // namespace tosaic
