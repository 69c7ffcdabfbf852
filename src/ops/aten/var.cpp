// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  VarianceCall v = variance_call(call);
  return without_axes(moments(v.x, v.axes, v.correction).variance, v);
}
}  // namespace

AtenOp aten_var() {
  return {
      .schemas =
          {"var(Tensor self, bool unbiased=True) -> Tensor",
           "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
           "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
      .summary = "the variance of the elements: mean square distance from the mean",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"default: x(2,3,4)", "dim: x(2,3,4), [1], False", "dim: x(2,3,4), [-1], True, True",
                 "correction: x(2,3,4), [0,2], correction=0, keepdim=True", "correction: x(5,3), [0]"},
      .out_overloads = {{"var.dim", "out"}}};
}
}  // namespace tosaic
