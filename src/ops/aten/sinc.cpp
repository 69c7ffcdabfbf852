// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// One call, as a quotient of two tables is far off near 0.
Vals lower(Builder& b, const Call& call) {
  Val x = functions::widened(promotion::as_float(call.tensor("self")));
  Val zero = functions::equal(x, b.like(x, 0.0));
  Val angle = b.scaled(b.select(zero, b.like(x, 1.0), x), std::numbers::pi);
  Val quotient = b.mul(b.unary(tosa::op::sin, angle), b.unary(tosa::op::reciprocal, angle));
  return functions::narrowed_to(b.select(zero, b.like(x, 1.0), quotient),
                                promotion::as_float(call.tensor("self")).dtype());
}
}  // namespace

AtenOp aten_sinc() {
  return {.schemas = {"sinc(Tensor self) -> Tensor", "sinc_(Tensor(a!) self) -> Tensor(a!)",
                      "special_sinc(Tensor self) -> Tensor"},
          .summary = "sin(pi x) / (pi x), and 1 at 0",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-3,3,129)", "s(-2,2,5)", "special_sinc.default: x(2,3)"}};
}
}  // namespace tosaic
