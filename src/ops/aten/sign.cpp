// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self"});
  Val x = p.values[0], zero = b.like(x, 0.0);
  Val negative = b.select(functions::less(x, 0.0), b.like(x, -1.0), zero);
  return p.finished(b.select(functions::greater(x, 0.0), b.like(x, 1.0), negative));
}
}  // namespace

AtenOp aten_sign() {
  return {.schemas = {"sign(Tensor self) -> Tensor", "sign_(Tensor(a!) self) -> Tensor(a!)",
                      "sgn(Tensor self) -> Tensor", "sgn_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "-1, 0 or 1",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "e(28)", "i(-3,3,12)", "sgn.default: x(2,3,4)"}};
}
}  // namespace tosaic
