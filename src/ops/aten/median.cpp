// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The lower one of the two in the middle, as PyTorch takes it.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.overload() == "default") {
    x = b.reshape(x, {x.shape().elements()});
    return b.reshape(b.slice_axis(sorted_along(b, x, 0, false).values, 0, (x.dim(0) - 1) / 2, 1), {});
  }
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
  const int axis = call.axis("dim", x.rank());
  Sorted s = sorted_along(b, x, axis, false);
  auto middle = [&](Val v) {
    Val y = b.slice_axis(v, axis, (x.dim(axis) - 1) / 2, 1);
    return call.flag("keepdim") ? y : b.squeeze(y, {axis});
  };
  return {middle(s.values), middle(s.indices)};
}
}  // namespace

AtenOp aten_median() {
  return {.schemas = {"median(Tensor self) -> Tensor",
                      "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"},
          .summary = "the element in the middle of the order",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(2,5)", "dim: x(3,6), 1", "dim: x(5,2), 0, True"},
          .out_overloads = {{"median.dim", "dim_values"}}};
}
}  // namespace tosaic
