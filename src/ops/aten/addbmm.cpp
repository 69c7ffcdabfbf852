// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// beta * self + alpha * sum(batch1 @ batch2): one matrix product, the batches side by side.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("batch1"), y = call.tensor("batch2");
  if (x.rank() != 3 || y.rank() != 3)
    b.refuse("aten.addbmm.rank", "products of shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
  Val rows = calls::view(calls::permute(x, {1, 0, 2}), {x.dim(1), x.dim(0) * x.dim(2)});
  Val product =
      calls::mul(b.aten(aten::op::mm, {rows, calls::view(y, {y.dim(0) * y.dim(1), y.dim(2)})}), call.number("alpha"));
  const double beta = call.number("beta");
  return beta == 0 ? product : calls::add(product, calls::mul(call.tensor("self"), beta));
}
}  // namespace

AtenOp aten_addbmm() {
  return {.schemas = {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"},
          .summary = "a matrix plus the sum of products of matrices",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,5), x(2,3,4), x(2,4,5)", "x(3,5), x(2,3,4), x(2,4,5), beta=0.5, alpha=2"}};
}
}  // namespace tosaic
