// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::arctangent(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_atan() {
  return {.schemas = {"atan(Tensor self) -> Tensor", "atan_(Tensor(a!) self) -> Tensor(a!)",
                      "arctan(Tensor self) -> Tensor", "arctan_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "arc tangent",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"s(-3,3,129)", "x(2,3,4)", "s(-100,100,64)", "e(28)", "arctan.default: s(-3,3,129)"},
          .bounds = {{-std::numbers::pi / 2, std::numbers::pi / 2}}};
}
}  // namespace tosaic
