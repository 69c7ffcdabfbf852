// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  Val plain = b.scaled(b.unary(tosa::op::log, x), std::numbers::log2e);
  return b.exact() ? functions::nearest_logarithm(x, 2, plain) : plain;
}
}  // namespace

AtenOp aten_log2() {
  return {.schemas = {"log2(Tensor self) -> Tensor", "log2_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "logarithm to base 2",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(0.01,10,2,3,4)", "e(28)", "i(1,9,6)"},
          .has_exact_form = true};
}
}  // namespace tosaic
