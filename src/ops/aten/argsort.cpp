// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sort.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return b.scalar(0, DType::i32);
  return sorted_along(b, x, call.axis("dim", x.rank()), call.flag("descending")).indices;
}
}  // namespace

AtenOp aten_argsort() {
  return {.schemas = {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
                      "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor"},
          .summary = "the indices that put the elements of a dim in order",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: x(2,6), -1, True", "default: x(5,2), 0", "default: i(0,4,2,8)",
                     "stable: i(0,3,9), stable=True", "stable: x(3,7), stable=True, descending=True"}};
}
}  // namespace tosaic
