// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const double alpha = call.number("alpha"), scale = call.number("scale");
  Val below = b.scaled(functions::exp_minus_one(b.scaled(x, call.number("input_scale"))), alpha * scale);
  return b.select(functions::greater(x, 0.0), b.scaled(x, scale), below);
}
}  // namespace

AtenOp aten_elu() {
  return {.schemas = {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
                      "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)"},
          .summary = "x * scale above 0, alpha * scale * (exp(x * input_scale) - 1) below",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-8,8,64), 1.5", "s(-8,8,65), 0.5, 1.25, 0.75", "e(28)"}};
}
}  // namespace tosaic
