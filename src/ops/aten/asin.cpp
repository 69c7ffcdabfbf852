// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::arcsine(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_asin() {
  return {.schemas = {"asin(Tensor self) -> Tensor", "asin_(Tensor(a!) self) -> Tensor(a!)",
                      "arcsin(Tensor self) -> Tensor", "arcsin_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "arc sine",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"s(-1,1,129)", "u(-0.01,0.01,24)", "e(28)", "arcsin.default: s(-1,1,129)"},
          .bounds = {{-std::numbers::pi / 2, std::numbers::pi / 2}}};
}
}  // namespace tosaic
