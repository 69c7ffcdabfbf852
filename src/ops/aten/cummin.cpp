// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/cumulative.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_running_extreme(b, call, false); }
}  // namespace

AtenOp aten_cummin() {
  return {.schemas = {"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"},
          .summary = "the smallest element up to each index along a dim, and its index",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,5), 1", "x(7,2), 0", "n(8), 0", "i(-3,3,2,6), -1", "b(2,4), 1", "x(), 0", "x(3,1), 1"}};
}
}  // namespace tosaic
