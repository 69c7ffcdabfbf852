// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// log(1 + e^t) = max(t, 0) + log(1 + e^-|t|), whose exponential cannot overflow.
Vals lower(Builder& b, const Call& call) {
  const double beta = call.number("beta"), threshold = call.number("threshold");
  Val x = call.tensor("self"), t = b.scaled(x, beta);
  Val tail = functions::log_one_plus(b.unary(tosa::op::exp, b.negate(b.unary(tosa::op::abs, t))));
  Val soft = b.scaled(b.add(b.clamp(t, 0.0, std::numeric_limits<double>::infinity()), tail), 1 / beta);
  // Above 20 the tail is below f32's resolution: nothing to select.
  if (beta == 1 && threshold >= 20) return soft;
  return b.select(functions::greater(t, threshold), x, soft);
}
}  // namespace

AtenOp aten_softplus() {
  return {.schemas = {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"},
          .summary = "log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-30,30,64)", "s(-30,30,65), 2, 10", "x(2,3,4), 0.5, 3.0", "e(28)"}};
}
}  // namespace tosaic
