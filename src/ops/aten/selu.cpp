// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.aten(aten::op::elu, {call.tensor("self")},
                {{"alpha", 1.6732632423543772848170429916717}, {"scale", 1.0507009873554804934193349852946}});
}
}  // namespace

AtenOp aten_selu() {
  return {.schemas = {"selu(Tensor self) -> Tensor", "selu_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "elu with the alpha and scale of self-normalising networks",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "s(-8,8,64)", "e(28)"}};
}
}  // namespace tosaic
