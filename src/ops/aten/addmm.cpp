// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// beta * self + alpha * (mat1 @ mat2). With a bias vector this is what linear is: one accumulation.
Vals lower(Builder& b, const Call& call) {
  Val self = call.tensor("self"), x = call.tensor("mat1"), y = call.tensor("mat2");
  const double alpha = call.number("alpha"), beta = call.number("beta");
  if (alpha == 1 && beta == 1 && self.rank() == 1 && y.rank() == 2 && self.dim(0) == y.dim(1))
    return b.aten(aten::op::linear, {x, b.aten(aten::op::t, {y}), self});
  Val product = calls::mul(b.aten(aten::op::mm, {x, y}), alpha);
  return beta == 0 ? product : calls::add(product, calls::mul(self, beta));
}
}  // namespace

AtenOp aten_addmm() {
  return {.schemas = {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"},
          .summary = "a tensor plus the product of two matrices",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {
              "x(5), x(3,4), const(x(4,5)) # integer=quantise.bias-type: only a constant bias fits the accumulator",
              "x(3,5), x(3,4), x(4,5), beta=0.5, alpha=2", "x(1,5), x(3,4), x(4,5)", "x(5), x(3,4), x(4,5), beta=0"}};
}
}  // namespace tosaic
