// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// min(x, 0) - log(1 + e^-|x|)
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  Val tail = functions::log_one_plus(b.unary(tosa::op::exp, b.negate(b.unary(tosa::op::abs, x))));
  return b.sub(b.clamp(x, -std::numeric_limits<double>::infinity(), 0.0), tail);
}
}  // namespace

AtenOp aten_log_sigmoid() {
  return {.schemas = {"log_sigmoid(Tensor self) -> Tensor"},
          .summary = "log(1 / (1 + exp(-x)))",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-30,30,64)", "e(28)"}};
}
}  // namespace tosaic
