// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("x"), y = call.tensor("y");
  return calls::sum(calls::mul(x, y), {call.axis("dim", std::max(x.rank(), y.rank()))}, false);
}
}  // namespace

AtenOp aten_linalg_vecdot() {
  return {.schemas = {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor"},
          .summary = "inner products of vectors along a dim",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,5), x(2,5)", "x(2,3,4), x(2,3,4), dim=1", "x(3,4), x(4)", "x(2,3,4), x(3,1), dim=-2"}};
}
}  // namespace tosaic
