// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// log(x / (1 - x)); around 1/2, where the quotient is near 1, as 2 atanh(2x - 1).
Vals lower(Builder& b, const Call& call) {
  Val given = promotion::as_float(call.tensor("self")), x = functions::widened(given);
  if (call.has("eps")) x = b.clamp(x, call.number("eps"), 1.0 - call.number("eps"));
  Val centred = b.sub(b.scaled(x, 2.0), 1.0);
  Val near = b.scaled(functions::inverse_tanh(centred), 2.0);
  Val far = b.unary(tosa::op::log, b.mul(x, b.unary(tosa::op::reciprocal, b.sub(b.like(x, 1.0), x))));
  Val y = b.select(functions::less(b.unary(tosa::op::abs, centred), 0.25), near, far);
  return functions::narrowed_to(y, given.dtype());
}
}  // namespace

AtenOp aten_logit() {
  return {
      .schemas = {"logit(Tensor self, float? eps=None) -> Tensor",
                  "logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)",
                  "special_logit(Tensor self, float? eps=None) -> Tensor"},
      .summary = "log(x / (1 - x)), the inverse of sigmoid; eps keeps x away from 0 and 1",
      .rule = Rule::pointwise,
      .lower = {lower},
      .domain = {"s(0.01,0.99,99)", "u(0,1,2,3,4)", "s(-0.5,1.5,33), 0.01", "s(0,1,9)", "e(28)", "i(0,2,6)",
                 "s(0.499,0.501,9) # half=off: a thousandth of the range shows nothing but the rounding of the inputs",
                 "special_logit.default: u(0.1,0.9,2,3), 1e-6"}};
}
}  // namespace tosaic
