// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::exp_minus_one(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_expm1() {
  return {.schemas = {"expm1(Tensor self) -> Tensor", "expm1_(Tensor(a!) self) -> Tensor(a!)",
                      "special_expm1(Tensor self) -> Tensor"},
          .summary = "exp(x) - 1, accurate near 0",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-1,1,128)", "s(-20,80,64)", "e(28)", "special_expm1.default: x(2,3,4)"}};
}
}  // namespace tosaic
