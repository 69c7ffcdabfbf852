// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Doubling, as in cumsum: no sum of exponentials leaves the range that its largest term has.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return b.aten(aten::op::clone, {x});
  const int axis = call.axis("dim", x.rank());
  const std::int64_t size = x.dim(axis);
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    const Val before = calls::slice(x, axis, 0, size - shift), here = calls::slice(x, axis, shift, size - shift);
    const Val sum = b.aten(aten::op::logaddexp, {here, before});
    x = calls::cat({calls::slice(x, axis, 0, shift), sum}, axis);
  }
  return x;
}
}  // namespace

AtenOp aten_logcumsumexp() {
  return {.schemas = {"logcumsumexp(Tensor self, int dim) -> Tensor"},
          .summary = "the logarithms of running sums of exponentials along a dim",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,5), 1", "x(7,2), 0", "u(-90,90,3,6), -1", "n(8), 0", "x(), 0"}};
}
}  // namespace tosaic
