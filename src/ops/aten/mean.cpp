// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/lowering/exact.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty())
    return of_nothing(call, given, reduced_axes(call, given), keeps_dims(call),
                      std::numeric_limits<double>::quiet_NaN(), given.dtype());
  Val x = with_dtype(b, call, given);
  if (!x.type().quantised() && !is_float(x.dtype()))
    b.refuse("aten.mean.dtype",
             "the mean of " + std::string(name_of(x.dtype())) + " is not defined; give a floating-point dtype");
  const auto axes = reduced_axes(call, x);
  const auto count = static_cast<double>(elements_along(x, axes));
  if (!b.exact() || x.type().quantised()) return summed(x, axes, keeps_dims(call), 1 / count);
  Val sum = summed(b.cast(x, sum_dtype(x.dtype())), axes, keeps_dims(call));
  return b.cast(functions::nearest_quotient(sum, b.like(sum, count)), x.dtype());
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
          .out_overloads = {{"mean.dim", "out"}, {"mean.default", "dtype_out"}},
          .has_exact_form = true};
}
}  // namespace tosaic
