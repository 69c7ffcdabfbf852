// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.scaled(b.clamp(b.add(call.tensor("self"), 3.0), 0.0, 6.0), 1.0 / 6);
}
}  // namespace

AtenOp aten_hardsigmoid() {
  return {.schemas = {"hardsigmoid(Tensor self) -> Tensor", "hardsigmoid_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "clamp(x + 3, 0, 6) / 6",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-5,5,64)", "e(28)"}};
}
}  // namespace tosaic
