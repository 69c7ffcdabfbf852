// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  return b.exact() ? functions::nearest_quotient(b.like(x, 1.0), x) : b.unary(tosa::op::reciprocal, x);
}
}  // namespace

AtenOp aten_reciprocal() {
  return {.schemas = {"reciprocal(Tensor self) -> Tensor", "reciprocal_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "1 / x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(0.1,4,2,3,4)", "e(28)", "i(1,9,6)"},
          .has_exact_form = true};
}
}  // namespace tosaic
