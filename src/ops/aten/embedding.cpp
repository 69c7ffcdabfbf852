// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val table = call.tensor("weight");
  if (table.rank() != 2) b.refuse("aten.embedding.rank", "a table of shape " + to_string(table.shape()));
  return selected(table, 0, call.tensor("indices"));
}
}  // namespace

AtenOp aten_embedding() {
  return {.schemas = {"embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
                      "bool sparse=False) -> Tensor"},
          .summary = "the rows of a table that indices name",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"const(x(10,4)), l(0,10,2,3)", "x(7,3), l(0,7,5)", "x(5,2), l(0,5)", "b(6,3), l(0,6,4)"}};
}
}  // namespace tosaic
