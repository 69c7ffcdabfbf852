// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// log(1 + t + sqrt(t) sqrt(t + 2)), t = x - 1; log(2 x) where x^2 dwarfs 1, before it overflows.
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self")), t = b.sub(x, 1.0);
  const double far = x.dtype() == DType::f32 ? 1e4 : 100;
  Val root = b.mul(functions::square_root(t), functions::square_root(b.add(t, 2.0)));
  Val large = b.add(b.unary(tosa::op::log, x), std::numbers::ln2);
  return b.select(functions::greater(x, far), large, functions::log_one_plus(b.add(t, root)));
}
}  // namespace

AtenOp aten_acosh() {
  return {
      .schemas = {"acosh(Tensor self) -> Tensor", "acosh_(Tensor(a!) self) -> Tensor(a!)",
                  "arccosh(Tensor self) -> Tensor", "arccosh_(Tensor(a!) self) -> Tensor(a!)"},
      .summary = "inverse hyperbolic cosine",
      .rule = Rule::pointwise,
      .lower = {lower},
      .domain = {
          "s(1,5,129)",
          "u(1,1.01,24) # int8=quantise.table-types: 256 quantised values cannot follow it there, so it stays float",
          "s(1,20000,64)", "e(28)", "arccosh.default: s(1,5,129)"}};
}
}  // namespace tosaic
