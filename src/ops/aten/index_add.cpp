// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index"), source = call.tensor("source");
  if (x.rank() == 0) b.refuse("aten.index_add.rank", "index_add to a scalar");
  Val added = b.scaled(source, call.number("alpha"));
  if (added.type().quantised()) added = b.rescale(added, x.type().with(added.shape()));
  return put_along(b, x, call.axis("dim", x.rank()), b.reshape(index, {index.shape().elements()}), added, Put::add);
}
}  // namespace

AtenOp aten_index_add() {
  return {
      .schemas = {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
                  "index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)"},
      .summary = "a copy of x with slices added at given indices of a dim",
      .rule = Rule::sum,
      .lower = {lower},
      .domain = {"x(4,3), 0, l(0,4,6), x(6,3)", "x(2,4,3), 1, l(0,4,2), x(2,2,3), alpha=2",
                 "i(-9,9,4,3), 0, l(0,4,6), i(-9,9,6,3)"}};
}
}  // namespace tosaic
