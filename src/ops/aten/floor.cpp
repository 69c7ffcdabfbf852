// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return promotion::is_real(x) ? functions::floor(x) : x;
}
}  // namespace

AtenOp aten_floor() {
  return {.schemas = {"floor(Tensor self) -> Tensor", "floor_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "the largest integer that is not above x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "e(28)", "i(-5,5,6)"}};
}
}  // namespace tosaic
