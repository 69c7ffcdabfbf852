// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return promotion::is_real(x) ? functions::truncated(x) : x;
}
}  // namespace

AtenOp aten_trunc() {
  return {.schemas = {"trunc(Tensor self) -> Tensor", "trunc_(Tensor(a!) self) -> Tensor(a!)",
                      "fix(Tensor self) -> Tensor", "fix_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x without its fraction",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(-5,5,2,3,4)", "e(28)", "i(-9,9,12)", "fix.default: u(-5,5,2,3,4)"}};
}
}  // namespace tosaic
