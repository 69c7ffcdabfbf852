// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index");
  if (x.rank() == 0) return x;
  return selected(x, call.axis("dim", x.rank()), b.reshape(index, {index.shape().elements()}));
}
}  // namespace

AtenOp aten_index_select() {
  return {.schemas = {"index_select(Tensor self, int dim, Tensor index) -> Tensor"},
          .summary = "the slices of a dim that a list of indices names",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(5,3), 0, l(0,5,4)", "x(2,3,4), 1, l(0,3,2)", "x(2,6), -1, l(0,6,7)", "b(4,2), 0, l(0,4,3)"}};
}
}  // namespace tosaic
