// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.scaled(promotion::as_float(call.tensor("self")), 180 / std::numbers::pi);
}
}  // namespace

AtenOp aten_rad2deg() {
  return {.schemas = {"rad2deg(Tensor self) -> Tensor", "rad2deg_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "radians as degrees",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-180,180,129)"}};
}
}  // namespace tosaic
