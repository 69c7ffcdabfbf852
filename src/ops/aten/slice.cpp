// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const SliceRange range = slice_range(b, call, x.dim(axis));
  return strided_slice(x, axis, range.start, range.count, range.step);
}
}  // namespace

AtenOp aten_slice() {
  return {
      .schemas =
          {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
           "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor"},
      .summary = "every step-th element of a range of one dim",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(6,3), 0, 1, 4", "x(2,7), 1, -5, -1", "x(2,7), 1, 0, 9223372036854775807, 2", "x(2,7), -1, 1, 7, 3",
                 "x(2,10), 1, 1, 10, 4", "x(7), 0, 0, 7, 4", "b(2,5), 1, None, 3",
                 "slice_copy.Tensor: x(2,7), 1, 2, 6"}};
}
}  // namespace tosaic
