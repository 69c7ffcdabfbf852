// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  VarianceCall v = variance_call(call);
  return without_axes(calls::sqrt(moments(v.x, v.axes, v.correction).variance), v);
}
}  // namespace

AtenOp aten_std() {
  return {
      .schemas =
          {"std(Tensor self, bool unbiased=True) -> Tensor",
           "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
           "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
      .summary = "the standard deviation of the elements",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"default: x(2,3,4)",
                 "dim: x(2,3,4), [1], False # share=0.01: the lines of a table do not follow the square root near 0",
                 "correction: x(2,3,4), [-1], correction=0, keepdim=True"},
      .out_overloads = {{"std.dim", "out"}}};
}
}  // namespace tosaic
