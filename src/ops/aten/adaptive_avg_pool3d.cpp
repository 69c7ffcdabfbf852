// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 5, "adaptive_avg_pool3d");
  return x.restore(channels_first(adaptive_volume_pooled(b, "adaptive_avg_pool3d", channels_last(x.x),
                                                         call.spread("output_size", 3), Pool::average)));
}
}  // namespace

AtenOp aten_adaptive_avg_pool3d() {
  return {.schemas = {"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
                      "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"},
          .summary = "the means of a given number of equal boxes of a volume",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,4,5,6), [1,1,1]", "x(1,2,4,5,6), [2,3,4]",
                     "_adaptive_avg_pool3d.default: x(1,2,4,4,4), [2,2,2]"}};
}
}  // namespace tosaic
