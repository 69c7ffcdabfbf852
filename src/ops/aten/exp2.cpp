// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  Val wide = functions::widened(x), y = b.unary(tosa::op::exp, b.scaled(wide, std::numbers::ln2));
  if (b.exact()) y = functions::nearest_power(b.like(wide, 2.0), wide, y);
  return functions::narrowed_to(y, x.dtype());
}
}  // namespace

AtenOp aten_exp2() {
  return {.schemas = {"exp2(Tensor self) -> Tensor", "exp2_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "2 to the power x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-120,120,64)", "e(28)", "i(-5,5,6)"},
          .has_exact_form = true};
}
}  // namespace tosaic
