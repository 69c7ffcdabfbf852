// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self"});
  return p.finished(b.mul(p.values[0], p.values[0]));
}
}  // namespace

AtenOp aten_square() {
  return {.schemas = {"square(Tensor self) -> Tensor", "square_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "x * x",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "e(28)", "i(-9,9,12)", "i8(-9,9,12)"}};
}
}  // namespace tosaic
