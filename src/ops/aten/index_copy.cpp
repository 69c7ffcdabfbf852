// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index"), source = call.tensor("source");
  if (x.rank() == 0) return b.reshape(source, {});
  return put_along(b, x, call.axis("dim", x.rank()), b.reshape(index, {index.shape().elements()}), source,
                   replaced_by(call));
}
}  // namespace

AtenOp aten_index_copy() {
  return {.schemas = {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
                      "index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)"},
          .summary = "a copy of x in which the slices of a dim that indices name are replaced",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(5,3), 0, l(3,4,1), x(1,3)", "x(2,4,3), 1, l(0,1,1), x(2,1,3)", "x(5,3), 0, l(0,3,6), x(6,3)",
                     "x(2,4,3), 1, l(0,4,5), x(2,5,3)"}};
}
}  // namespace tosaic
