// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const double lambd = call.number("lambd");
  return b.sub(x, b.clamp(x, -lambd, lambd));
}
}  // namespace

AtenOp aten_softshrink() {
  return {.schemas = {"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"},
          .summary = "x moved toward 0 by lambd, and 0 where |x| is below it",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), 1.0", "e(28)"}};
}
}  // namespace tosaic
