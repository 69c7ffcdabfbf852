// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::log_one_plus(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_log1p() {
  return {.schemas = {"log1p(Tensor self) -> Tensor", "log1p_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "log(1 + x), accurate near 0",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(-0.9,4,2,3,4)", "s(-0.99,1,128)", "e(28)", "i(0,9,6)"}};
}
}  // namespace tosaic
