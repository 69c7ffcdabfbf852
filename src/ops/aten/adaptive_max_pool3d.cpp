// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The indices, the second result of PyTorch's, are not given: each tile has a size of its own.
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 5, "adaptive_max_pool3d");
  return x.restore(channels_first(adaptive_volume_pooled(b, "adaptive_max_pool3d", channels_last(x.x),
                                                         call.spread("output_size", 3), Pool::maximum)));
}
}  // namespace

AtenOp aten_adaptive_max_pool3d() {
  return {.schemas = {"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)"},
          .summary = "the largest elements of a given number of equal boxes of a volume",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,4,5,6), [2,3,4] # results=1: the indices are not given",
                     "x(2,4,4,4), [1,1,1] # results=1: the indices are not given"}};
}
}  // namespace tosaic
