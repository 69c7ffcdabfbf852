// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Doubling: after step k each element holds the product of the 2^k elements that end at it.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (auto dtype = call.dtype("dtype")) x = b.cast(x, *dtype);
  x = as_summed(b, call, x);
  if (x.rank() == 0) return x;
  const int axis = call.axis("dim", x.rank());
  const DType result = is_float(x.dtype()) ? x.dtype() : sum_dtype(x.dtype());
  x = b.cast(x, sum_dtype(x.dtype()));
  const std::int64_t size = x.dim(axis);
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank()), 0), after = before;
    before[static_cast<std::size_t>(axis)] = shift;
    x = b.mul(x, b.pad(b.slice_axis(x, axis, 0, size - shift), before, after, 1.0));
  }
  return b.cast(x, result);
}
}  // namespace

AtenOp aten_cumprod() {
  return {.schemas = {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "running products along a dim",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,5), 1", "i(1,4,6,2), 0"}};
}
}  // namespace tosaic
