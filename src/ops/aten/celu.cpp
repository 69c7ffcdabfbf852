// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const double alpha = call.number("alpha");
  if (alpha == 0) b.refuse("aten.celu-alpha", "celu with alpha 0 is undefined");
  return b.aten(aten::op::elu, {call.tensor("self")}, {{"alpha", alpha}, {"input_scale", 1 / alpha}});
}
}  // namespace

AtenOp aten_celu() {
  return {.schemas = {"celu(Tensor self, Scalar alpha=1.) -> Tensor",
                      "celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)"},
          .summary = "x above 0, alpha * (exp(x / alpha) - 1) below",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-8,8,64), 1.5", "e(28)"}};
}
}  // namespace tosaic
