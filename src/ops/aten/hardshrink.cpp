// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  return functions::up_to(functions::magnitude(x), call.number("lambd"), b.like(x, 0.0), x);
}
}  // namespace

AtenOp aten_hardshrink() {
  return {.schemas = {"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"},
          .summary = "0 where |x| <= lambd, x elsewhere",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), 1.0", "e(28)"}};
}
}  // namespace tosaic
