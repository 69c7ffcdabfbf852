// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return b.add(x, call.tensor("src"));
  return scattered_lines(b, x, call.axis("dim", x.rank()), call.tensor("index"), call.tensor("src"), Put::add);
}
}  // namespace

AtenOp aten_scatter_add() {
  return {.schemas = {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                      "scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)"},
          .summary = "a copy of x with elements added where indices along one dim name",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(3,5), 1, l(0,5,3,7), x(3,7)", "x(3,5), 0, l(0,3,2,4), x(2,5)",
                     "i(-9,9,3,5), 1, l(0,5,3,7), i(-9,9,3,7)"}};
}
}  // namespace tosaic
