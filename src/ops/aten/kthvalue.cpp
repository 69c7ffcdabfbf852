// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
  const int axis = call.axis("dim", x.rank());
  const std::int64_t k = call.integer("k");
  if (k < 1 || k > x.dim(axis))
    b.refuse("aten.kthvalue.k", "element " + std::to_string(k) + " of " + std::to_string(x.dim(axis)));
  Sorted s = sorted_along(b, x, axis, false);
  auto kth = [&](Val v) {
    Val y = b.slice_axis(v, axis, k - 1, 1);
    return call.flag("keepdim") ? y : b.squeeze(y, {axis});
  };
  return {kth(s.values), kth(s.indices)};
}
}  // namespace

AtenOp aten_kthvalue() {
  return {
      .schemas = {"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"},
      .summary = "the k-th smallest element of a dim, and its index",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(3,7), 2", "x(5,2), 5, 0, True", "x(2,1,4), 3, -1", "n(8), 3"},
      .out_overloads = {{"kthvalue.default", "values"}}};
}
}  // namespace tosaic
