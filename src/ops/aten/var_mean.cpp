// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  VarianceCall v = variance_call(call);
  Moments m = moments(v.x, v.axes, v.correction);
  Val spread = call.schema().name == "std_mean" ? calls::sqrt(m.variance) : m.variance;
  return {without_axes(spread, v), without_axes(m.mean, v)};
}
}  // namespace

AtenOp aten_var_mean() {
  return {
      .schemas = {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
                  "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
                  "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
                  "-> (Tensor, Tensor)",
                  "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
                  "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
                  "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
                  "-> (Tensor, Tensor)"},
      .summary = "variance (or standard deviation) and mean of the elements",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"default: x(2,3,4)", "dim: x(2,3,4), [1]", "correction: x(2,3,4), [-1], correction=0, keepdim=True",
                 "std_mean.default: x(4,3)", "std_mean.dim: x(2,5), [1], False",
                 "std_mean.correction: x(2,5), [0], correction=0"}};
}
}  // namespace tosaic
