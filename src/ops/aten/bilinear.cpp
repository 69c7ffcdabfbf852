// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// y[..., k] = sum over i, j of x1[..., i] weight[k, i, j] x2[..., j] + bias[k]: one product with all of the weights,
// and one with a matrix of its own for each row of x2.
Vals lower(Builder& b, const Call& call) {
  Val x1 = call.tensor("input1"), x2 = call.tensor("input2"), weight = call.tensor("weight");
  if (weight.rank() != 3 || x1.rank() < 1 || x1.rank() != x2.rank() || x1.dim(-1) != weight.dim(1) ||
      x2.dim(-1) != weight.dim(2) || x1.shape().elements() / x1.dim(-1) != x2.shape().elements() / x2.dim(-1))
    b.refuse("aten.bilinear.shape", "operands " + to_string(x1.shape()) + " and " + to_string(x2.shape()) +
                                        " do not fit the weight " + to_string(weight.shape()));
  const std::int64_t k = weight.dim(0), i = weight.dim(1), j = weight.dim(2), rows = x1.shape().elements() / i;
  Val all =
      b.aten(aten::op::mm, {calls::view(x1, {rows, i}), calls::view(calls::permute(weight, {1, 0, 2}), {i, k * j})});
  Val y = b.aten(aten::op::bmm, {calls::view(all, {rows, k, j}), calls::view(x2, {rows, j, 1})});
  auto dims = x1.shape().sizes();
  dims.back() = k;
  y = calls::view(y, Shape(dims));
  const auto bias = call.optional_tensor("bias");
  return bias ? b.aten(aten::op::add_Tensor, {y, *bias}) : y;
}
}  // namespace

AtenOp aten_bilinear() {
  return {.schemas = {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor"},
          .summary = "a bilinear form of two tensors' last dims for each output",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(5,3), x(5,4), const(x(2,3,4)), const(x(2))", "x(2,3,5), x(2,3,4), const(x(6,5,4))",
                     "x(3), x(4), const(x(2,3,4)), const(x(2))"}};
}
}  // namespace tosaic
