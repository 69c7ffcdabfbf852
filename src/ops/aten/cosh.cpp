// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return functions::hyperbolic_cosine(promotion::as_float(call.tensor("self")));
}
}  // namespace

AtenOp aten_cosh() {
  return {.schemas = {"cosh(Tensor self) -> Tensor", "cosh_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "hyperbolic cosine",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-2,2,128)", "s(-80,80,64)", "e(28)"}};
}
}  // namespace tosaic
