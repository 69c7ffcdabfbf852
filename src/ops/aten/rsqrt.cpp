// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/exact.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return functions::inverse_square_root(promotion::as_float(call.tensor("self")));
}
}  // namespace

AtenOp aten_rsqrt() {
  return {.schemas = {"rsqrt(Tensor self) -> Tensor", "rsqrt_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "1 / sqrt(x)",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(0.01,10,2,3,4)", "e(28)", "i(1,9,6)"},
          .has_exact_form = true};
}
}  // namespace tosaic
