// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  Val low = functions::at_least(b.like(x, call.number("threshold")), x);
  return b.select(low, b.like(x, call.number("value")), x);
}
}  // namespace

AtenOp aten_threshold() {
  return {.schemas = {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
                      "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)"},
          .summary = "x where it is above threshold, value elsewhere",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4), 0.1, -1.0", "e(28), 0.5, 2", "i(-9,9,12), 2, -7"}};
}
}  // namespace tosaic
