// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::inverse_tanh(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_atanh() {
  return {.schemas = {"atanh(Tensor self) -> Tensor", "atanh_(Tensor(a!) self) -> Tensor(a!)",
                      "arctanh(Tensor self) -> Tensor", "arctanh_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "inverse hyperbolic tangent",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"s(-0.999,0.999,129)", "u(-0.01,0.01,24)", "e(28)", "arctanh.default: s(-0.999,0.999,129)"}};
}
}  // namespace tosaic
