// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.scaled(promotion::as_float(call.tensor("self")), std::numbers::pi / 180);
}
}  // namespace

AtenOp aten_deg2rad() {
  return {.schemas = {"deg2rad(Tensor self) -> Tensor", "deg2rad_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "degrees as radians",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-180,180,129)"}};
}
}  // namespace tosaic
