// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), y = call.tensor("vec2");
  return b.mul(b.reshape(x, {x.shape().elements(), 1}), b.reshape(y, {1, y.shape().elements()}));
}
}  // namespace

AtenOp aten_outer() {
  return {.schemas = {"outer(Tensor self, Tensor vec2) -> Tensor", "ger(Tensor self, Tensor vec2) -> Tensor"},
          .summary = "all products of the elements of two vectors",
          .rule = Rule::product,
          .lower = {lower},
          .domain = {"x(3), x(4)", "ger.default: x(2), x(2)"}};
}
}  // namespace tosaic
