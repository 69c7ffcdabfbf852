// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const std::int64_t k = call.integer("k");
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
  const int axis = call.axis("dim", x.rank());
  if (k < 1 || k > x.dim(axis))
    b.refuse("aten.topk.k", "the first " + std::to_string(k) + " of " + std::to_string(x.dim(axis)) + " elements");
  Sorted s = sorted_along(b, x, axis, call.flag("largest"));
  return {b.slice_axis(s.values, axis, 0, k), b.slice_axis(s.indices, axis, 0, k)};
}
}  // namespace

AtenOp aten_topk() {
  return {.schemas = {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
                      "Tensor indices)"},
          .summary = "the k largest (smallest) elements of a dim, in order, and their indices",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,9), 3", "x(5,2), 2, 0, False", "n(8), 3", "n(8), 7, 0, False"},
          .out_overloads = {{"topk.default", "values"}}};
}
}  // namespace tosaic
