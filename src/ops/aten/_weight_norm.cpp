// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// v * g / |v|, the norm taken over all dims but one.
Vals lower(Builder&, const Call& call) {
  Val v = call.tensor("v"), g = call.tensor("g");
  const int dim = call.axis("dim", v.rank());
  calls::Axes axes;
  for (int i = 0; i < v.rank(); ++i)
    if (i != dim) axes.push_back(i);
  Val length = axes.empty() ? calls::abs(v) : calls::sqrt(calls::sum(calls::mul(v, v), axes, true));
  return calls::mul(v, calls::mul(g, calls::reciprocal(length)));
}
}  // namespace

AtenOp aten__weight_norm() {
  return {.schemas = {"_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor"},
          .summary = "a weight of given length: g v / |v|",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(4,3), x(4,1)", "x(3,4,2), x(1,4,1), 1"}};
}
}  // namespace tosaic
