// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  Shape inner = inferred_shape(b, call.ints("sizes"), x.dim(axis));
  auto dims = x.shape().sizes();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, inner.sizes().begin(), inner.sizes().end());
  return b.reshape(x, Shape(dims));
}
}  // namespace

AtenOp aten_unflatten() {
  return {.schemas = {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"},
          .summary = "splits one dim into several",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,12,3), 1, [3,-1]", "x(2,8), -1, [2,2,2]"}};
}
}  // namespace tosaic
