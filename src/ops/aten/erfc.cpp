// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  return b.sub(b.like(x, 1.0), b.unary(tosa::op::erf, x));
}
}  // namespace

AtenOp aten_erfc() {
  return {.schemas = {"erfc(Tensor self) -> Tensor", "erfc_(Tensor(a!) self) -> Tensor(a!)",
                      "special_erfc(Tensor self) -> Tensor"},
          .summary = "1 - erf(x)",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-5,5,64)", "e(28)", "special_erfc.default: x(2,3,4)"}};
}
}  // namespace tosaic
