// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_layout.h"
#include "ops/aten_pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 5, "max_pool3d");
  return x.restore(
      channels_first(volume_pooled(b, "max_pool3d", channels_last(x.x), pooling_of(b, call, 3), Pool::maximum)));
}
}  // namespace

AtenOp aten_max_pool3d() {
  return {.schemas = {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
                      "dilation=1, bool ceil_mode=False) -> Tensor"},
          .summary = "the largest element of each window of a volume",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,5,6,7), [2,3,2], [2,2,1], [1,1,0]", "x(2,4,4,4), [2,2,2]"}};
}
}  // namespace tosaic
