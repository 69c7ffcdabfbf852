// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Doubling: after step k each element holds the sum of the 2^k elements that end at it, log2(n) steps in all.
Vals lower(Builder& b, const Call& call) {
  Val x = as_summed(b, call, with_dtype(b, call, call.tensor("self")));
  if (x.rank() == 0) return x;
  const int axis = call.axis("dim", x.rank());
  const DType result = is_float(x.dtype()) || x.type().quantised() ? x.dtype() : sum_dtype(x.dtype());
  if (!x.type().quantised()) x = b.cast(x, sum_dtype(x.dtype()));
  const std::int64_t size = x.dim(axis);
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank()), 0), after = before;
    before[static_cast<std::size_t>(axis)] = shift;
    x = b.add(x, b.pad(b.slice_axis(x, axis, 0, size - shift), before, after, 0.0));
  }
  return x.type().quantised() ? x : b.cast(x, result);
}
}  // namespace

AtenOp aten_cumsum() {
  return {.schemas = {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"},
          .summary = "running sums along a dim",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(2,5), 1", "x(7,2), 0", "i(-9,9,2,6), -1", "b(2,4), 1"}};
}
}  // namespace tosaic
