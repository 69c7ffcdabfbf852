// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// beta * self + alpha * (batch1 @ batch2).
Vals lower(Builder& b, const Call& call) {
  Val product = calls::mul(b.aten(aten::op::bmm, {call.tensor("batch1"), call.tensor("batch2")}), call.number("alpha"));
  const double beta = call.number("beta");
  return beta == 0 ? product : calls::add(product, calls::mul(call.tensor("self"), beta));
}
}  // namespace

AtenOp aten_baddbmm() {
  return {.schemas = {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"},
          .summary = "a tensor plus products of matrices, pair by pair",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,5), x(2,3,4), x(2,4,5)", "x(1,5), x(2,3,4), x(2,4,5), beta=0.5, alpha=2"}};
}
}  // namespace tosaic
