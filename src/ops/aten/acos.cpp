// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::arccosine(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_acos() {
  return {.schemas = {"acos(Tensor self) -> Tensor", "acos_(Tensor(a!) self) -> Tensor(a!)",
                      "arccos(Tensor self) -> Tensor", "arccos_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "arc cosine",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"s(-1,1,129)", "u(0.99,1,24)", "e(28)", "arccos.default: s(-1,1,129)"},
          .bounds = {{0, std::numbers::pi}}};
}
}  // namespace tosaic
