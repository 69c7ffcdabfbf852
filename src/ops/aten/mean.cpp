// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = with_dtype(b, call, call.tensor("self"));
  if (!x.type().quantised() && !is_float(x.dtype()))
    b.refuse("aten.mean.dtype",
             "the mean of " + std::string(name_of(x.dtype())) + " is not defined; give a floating-point dtype");
  const auto axes = reduced_axes(call, x);
  return summed(x, axes, keeps_dims(call), 1.0 / static_cast<double>(elements_along(x, axes)));
}
}  // namespace

AtenOp aten_mean() {
  return {.schemas = {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                      "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "the arithmetic mean of the elements, over some dims or all",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"dim: x(1,3,5,7), [2,3]", "dim: x(1,3,5,7), [-1,-2], True", "dim: x(2,3), [0]",
                     "dim: x(2,3), None", "default: x(2,3,4)"},
          .out_overloads = {{"mean.dim", "out"}, {"mean.default", "dtype_out"}}};
}
}  // namespace tosaic
