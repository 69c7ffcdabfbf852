// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const std::int64_t start = call.integer("start"), first = start < 0 ? start + x.dim(axis) : start,
                     length = call.integer("length");
  if (first < 0 || length < 1 || first + length > x.dim(axis))
    b.refuse("aten.narrow.range", std::to_string(length) + " elements from " + std::to_string(start) + " of a dim of " +
                                      std::to_string(x.dim(axis)));
  return b.slice_axis(x, axis, first, length);
}
}  // namespace

AtenOp aten_narrow() {
  return {.schemas = {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
                      "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor"},
          .summary = "a range of one dim, by start and length",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(5,3), 0, 1, 3", "x(2,5), -1, -2, 2", "narrow_copy.default: x(4,3), 1, 1, 2"}};
}
}  // namespace tosaic
