// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
// tanh(log(1 + e)) = n / (n + 2), n = e (e + 2). Above the cut the ratio is 1 in the format at hand, and e^2 fits it.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const double cut = x.dtype() == DType::f16 ? 5 : 20;
  Val e = b.unary(tosa::op::exp, b.clamp(x, -std::numeric_limits<double>::infinity(), cut));
  Val n = b.mul(e, b.add(e, 2.0));
  return b.mul(x, b.mul(n, b.unary(tosa::op::reciprocal, b.add(n, 2.0))));
}
}  // namespace

AtenOp aten_mish() {
  return {.schemas = {"mish(Tensor self) -> Tensor", "mish_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x * tanh(log(1 + exp(x)))",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-30,30,64)", "e(28)"}};
}
}  // namespace tosaic
