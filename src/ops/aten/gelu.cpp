// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), phi;
  if (call.text("approximate") == "tanh") {
    // 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))
    Val cubic = b.add(b.scaled(b.mul(b.mul(x, x), x), 0.044715), x);
    phi = b.unary(tosa::op::tanh, b.scaled(cubic, std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  } else {
    phi = b.unary(tosa::op::erf, b.scaled(x, 1 / std::numbers::sqrt2));
  }
  return b.mul(b.scaled(x, 0.5), b.add(phi, 1.0));
}
}  // namespace

AtenOp aten_gelu() {
  return {
      .schemas = {"gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
                  "gelu_(Tensor(a!) self, *, str approximate=\"none\") -> Tensor(a!)"},
      .summary = "x times the normal distribution function at x, exactly or by its tanh approximation",
      .rule = Rule::pointwise,
      .lower = {lower},
      .domain = {"x(2,3,4)", "s(-5,5,64)", "f(28)", "x(2,3,4), approximate='tanh'", "s(-5,5,64), approximate='tanh'"}};
}
}  // namespace tosaic
