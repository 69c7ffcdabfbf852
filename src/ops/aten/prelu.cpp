// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// relu(x) + weight * min(x, 0)
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), weight = call.tensor("weight");
  if (weight.rank() == 1 && x.rank() > 1) {  // channels are dim 1
    std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
    dims[1] = weight.dim(0);
    weight = calls::view(weight, Shape(dims));
  }
  if (x.rank() == 0) weight = calls::view(weight, {});
  Val above = b.aten(aten::op::relu, {x});
  Val below = b.aten(aten::op::clamp, {x}, {{"max", 0.0}});
  return b.aten(aten::op::add_Tensor, {above, b.aten(aten::op::mul_Tensor, {below, weight})});
}
}  // namespace

AtenOp aten_prelu() {
  return {.schemas = {"prelu(Tensor self, Tensor weight) -> Tensor"},
          .summary = "x above 0, x * weight below, with one weight or one per channel",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4), const(u(0,0.5,1))", "x(2,3,4,5), const(u(0,0.5,3))", "x(6), x(1)", "x(2,3), x(3)",
                     "x(), x(1)"}};
}
}  // namespace tosaic
