// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::weighted_sum(p.values[1], p.values[0], -call.number("alpha")));
}
}  // namespace

AtenOp aten_rsub() {
  return {.schemas = {"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                      "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"},
          .summary = "other - alpha * self",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(2,3,4), x(4)", "x(2,3,4), x(4), alpha=2", "Scalar: x(2,3,4), 1.0", "Scalar: i(-9,9,12), 1, 2"}};
}
}  // namespace tosaic
