// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  std::vector<int> axes;
  if (call.overload() == "default") {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
    return extreme_along(x, axes, false, true);
  }
  const int axis = call.axis("dim", x.rank());
  const bool keep = call.flag("keepdim");
  return {extreme_along(x, {axis}, keep, true), index_of_extreme(x, axis, keep, true)};
}
}  // namespace

AtenOp aten_max() {
  return {.schemas = {"max(Tensor self) -> Tensor",
              "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"},
          .summary = "the largest element: of all, or along one dim with its index",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(2,3,4)",
                     "dim: x(2,3,4), 1",
                     "dim: x(2,3,4), -1, True",
                     "dim: i(-50,50,3,5), 0"}};
}
}  // namespace tosaic
