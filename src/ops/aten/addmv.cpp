// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// beta * self + alpha * (mat @ vec).
Vals lower(Builder& b, const Call& call) {
  Val product = calls::mul(b.aten(aten::op::mv, {call.tensor("mat"), call.tensor("vec")}), call.number("alpha"));
  const double beta = call.number("beta");
  return beta == 0 ? product : calls::add(product, calls::mul(call.tensor("self"), beta));
}
}  // namespace

AtenOp aten_addmv() {
  return {.schemas = {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor"},
          .summary = "a vector plus a matrix times a vector",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3), x(3,4), x(4)", "x(3), x(3,4), x(4), beta=2, alpha=0.5"}};
}
}  // namespace tosaic
