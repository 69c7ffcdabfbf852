// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return {x, b.scalar(0, DType::i32)};
  Sorted s = sorted_along(b, x, call.axis("dim", x.rank()), call.flag("descending"));
  return {s.values, s.indices};
}
}  // namespace

AtenOp aten_sort() {
  return {.schemas = {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
                      "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
                      "Tensor indices)"},
          .summary = "the elements of a dim in order, and their indices",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(3,7)", "default: x(5,2), 0, True", "default: n(8)", "default: n(8), 0, True",
                     "stable: i(0,4,2,8), stable=True, dim=1"},
          .out_overloads = {{"sort.default", "values"}, {"sort.stable", "values_stable"}}};
}
}  // namespace tosaic
