// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return b.unary(tosa::op::log, promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_log() {
  return {.schemas = {"log(Tensor self) -> Tensor", "log_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "natural logarithm",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(0.01,10,2,3,4)", "e(28)", "i(1,9,6)"}};
}
}  // namespace tosaic
