// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.unary(tosa::op::erf, promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_erf() {
  return {.schemas = {"erf(Tensor self) -> Tensor", "erf_(Tensor(a!) self) -> Tensor(a!)",
                      "special_erf(Tensor self) -> Tensor"},
          .summary = "the error function",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-5,5,64)", "e(28)", "special_erf.default: x(2,3,4)"}};
}
}  // namespace tosaic
