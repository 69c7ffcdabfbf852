// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals values(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 5, "max_pool3d");
  return x.restore(
      channels_first(volume_pooled(b, "max_pool3d", channels_last(x.x), pooling_of(b, call, 3), Pool::maximum)));
}

Vals values_and_indices(Builder& b, const Call& call) {
  Vals results = values(b, call);
  if (call.schema().returns.size() < 2) return results;
  Batched x = batched(call.tensor("self"), 5, "max_pool3d");
  Val indices = max_indices(b, "max_pool3d", channels_last(x.x), pooling_of(b, call, 3));
  results.push_back(b.cast(x.restore(channels_first(indices)), DType::i32));
  return results;
}
}  // namespace

AtenOp aten_max_pool3d() {
  return {.schemas = {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
                      "dilation=1, bool ceil_mode=False) -> Tensor",
                      "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
                      "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"},
          .summary = "the largest element of each window of a volume",
          .rule = Rule::transparent,
          .lower = {values_and_indices, values},
          .domain = {"x(1,2,5,6,7), [2,3,2], [2,2,1], [1,1,0]", "x(2,4,4,4), [2,2,2]",
                     "max_pool3d_with_indices.default: x(1,2,5,6,7), [2,3,2], [2,2,1], [1,1,0]"}};
}
}  // namespace tosaic
