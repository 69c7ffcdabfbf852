// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return promotion::is_real(x) ? functions::ceil(x) : x;
}
}  // namespace

AtenOp aten_ceil() {
  return {.schemas = {"ceil(Tensor self) -> Tensor", "ceil_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "the smallest integer that is not below x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "e(28)", "i(-5,5,6)"}};
}
}  // namespace tosaic
