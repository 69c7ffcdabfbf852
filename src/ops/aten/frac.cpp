// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return b.sub(x, functions::in_units_of(x, functions::truncated(x)));
}
}  // namespace

AtenOp aten_frac() {
  return {.schemas = {"frac(Tensor self) -> Tensor", "frac_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "the fraction of x, with the sign of x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"u(-5,5,2,3,4)", "e(28)"},
          .bounds = {{-1, 1}}};
}
}  // namespace tosaic
