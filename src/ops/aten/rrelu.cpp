// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.flag("training"))
    b.refuse("aten.training",
             "rrelu in training mode draws its slopes anew in each run: export the model in eval mode");
  const double slope = (call.number("lower") + call.number("upper")) / 2;
  return b.aten(aten::op::leaky_relu, {call.tensor("self")}, {{"negative_slope", slope}});
}
}  // namespace

AtenOp aten_rrelu() {
  return {.schemas = {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
                      "Generator? generator=None) -> Tensor",
                      "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
                      "training=False, Generator? generator=None) -> Tensor(a!)"},
          .summary = "x above 0, x times the mean of both slopes below: nothing is drawn outside training",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), 0.1, 0.5, False", "e(28)"}};
}
}  // namespace tosaic
