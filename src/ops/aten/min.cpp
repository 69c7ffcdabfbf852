// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.overload() == "default") return extreme_along(x, reduced_axes(call, x), false, false);
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
  const int axis = call.axis("dim", x.rank());
  const bool keep = call.flag("keepdim");
  return {extreme_along(x, {axis}, keep, false), index_of_extreme(x, axis, keep, false)};
}
}  // namespace

AtenOp aten_min() {
  return {.schemas = {"min(Tensor self) -> Tensor",
                      "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"},
          .summary = "the smallest element: of all, or along one dim with its index",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(2,3,4)", "dim: x(2,3,4), 1", "dim: x(2,3,4), -1, True", "dim: i(-50,50,3,5), 0"},
          .out_overloads = {{"min.default", "unary_out"}, {"min.dim", "dim_min"}}};
}
}  // namespace tosaic
