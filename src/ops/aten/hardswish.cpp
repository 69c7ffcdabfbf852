// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.mul(x, b.scaled(b.clamp(b.add(x, 3.0), 0.0, 6.0), 1.0 / 6));
}
}  // namespace

AtenOp aten_hardswish() {
  return {.schemas = {"hardswish(Tensor self) -> Tensor", "hardswish_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x * clamp(x + 3, 0, 6) / 6",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-5,5,64)", "f(28)", "n(8)"}};
}
}  // namespace tosaic
