// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const IndexPlan plan = index_plan(b, x, call.tensors("indices"));
  if (plan.nothing()) return x;
  Val y = gathered(plan.table(x), b.reshape(plan.position, {1, plan.common.elements()}));
  return b.transpose(b.reshape(y, plan.gathered_shape(x)), plan.placed());
}
}  // namespace

AtenOp aten_index() {
  return {.schemas = {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                      "index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor",
                      "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"},
          .summary = "x[i, j, ...] with index tensors",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(5,3), [l(0,5,4)]", "x(5,3), [l(-5,5,2,2)]", "x(4,5), [l(0,4,3), l(-5,5,3)]",
                     "x(2,4,5), [None, l(0,4,3)]", "x(2,4,5), [l(0,2,3,1), None, l(0,5,2)]",
                     "x(2,3,4,5), [None, l(0,3,2), l(0,4,2)]", "index.Tensor_hacked_twin: x(4,5), [l(0,4,3), l(0,5,3)]",
                     "_unsafe_index.Tensor: x(4,5), [None, l(0,5,3)]", "b(4,5), [None, l(-5,5,3)]"}};
}
}  // namespace tosaic
