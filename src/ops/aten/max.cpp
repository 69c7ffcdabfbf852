// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.overload() == "default") return extreme_along(x, reduced_axes(call, x), false, true);
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
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
          .domain = {"default: x(2,3,4)", "dim: x(2,3,4), 1", "dim: x(2,3,4), -1, True", "dim: i(-50,50,3,5), 0"},
          .out_overloads = {{"max.default", "unary_out"}, {"max.dim", "dim_max"}}};
}
}  // namespace tosaic
