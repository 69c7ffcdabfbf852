// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return functions::square_root(promotion::as_float(call.tensor("self"))); }
}  // namespace

AtenOp aten_sqrt() {
  return {.schemas = {"sqrt(Tensor self) -> Tensor", "sqrt_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "square root",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(0,10,2,3,4)", "e(28)", "i(0,17,12)"},
          .has_exact_form = true};
}
}  // namespace tosaic
