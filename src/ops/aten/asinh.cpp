// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// sign(x) log(1 + a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log(2 a) where a^2 dwarfs 1, before it overflows.
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self")), a = b.unary(tosa::op::abs, x), square = b.mul(a, a);
  const double far = x.dtype() == DType::f32 ? 1e4 : 100;
  Val root = functions::square_root(b.add(square, 1.0));
  Val inner = b.add(a, b.mul(square, b.unary(tosa::op::reciprocal, b.add(root, 1.0))));
  Val large = b.add(b.unary(tosa::op::log, a), std::numbers::ln2);
  Val y = b.select(functions::greater(a, far), large, functions::log_one_plus(inner));
  return functions::with_sign_of(x, y);
}
}  // namespace

AtenOp aten_asinh() {
  return {.schemas = {"asinh(Tensor self) -> Tensor", "asinh_(Tensor(a!) self) -> Tensor(a!)",
                      "arcsinh(Tensor self) -> Tensor", "arcsinh_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "inverse hyperbolic sine",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-3,3,129)", "u(-0.01,0.01,24)", "s(-20000,20000,64)", "e(28)",
                     "arcsinh.default: x(2,3,4)"}};
}
}  // namespace tosaic
