// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const double slope = call.number("negative_slope");
  Val below = b.scaled(x, slope);
  if (slope > 0 && slope <= 1) return b.maximum(x, below);
  return b.select(functions::greater(x, 0.0), x, below);
}
}  // namespace

AtenOp aten_leaky_relu() {
  return {.schemas = {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
                      "leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)"},
          .summary = "x above 0, x * negative_slope below",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), 0.2", "x(2,3,4), 1.5", "x(2,3,4), -0.5", "f(28), 0", "e(28)"}};
}
}  // namespace tosaic
