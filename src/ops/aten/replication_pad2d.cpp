// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/padding.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return padded_by_edges(b, call.schema().name, call.tensor("self"), call.ints("padding"), Edge::replicate);
}
}  // namespace

AtenOp aten_replication_pad2d() {
  return {.schemas = {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
                      "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
                      "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor"},
          .summary = "a tensor continued beyond its ends by its outermost elements",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"replication_pad1d.default: x(2,5), [2,3]", "replication_pad2d.default: x(1,2,4,5), [2,1,0,3]",
                     "replication_pad3d.default: x(1,1,3,4,3), [1,1,2,0,1,2]"}};
}
}  // namespace tosaic
