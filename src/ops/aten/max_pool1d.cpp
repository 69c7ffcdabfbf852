// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 3, "max_pool1d");
  Val y = max_pooled(b, "max_pool1d", channels_last(b.unsqueeze(x.x, 2)), pooling_of(b, call, 1));
  return x.restore(b.squeeze(channels_first(y), {2}));
}
}  // namespace

AtenOp aten_max_pool1d() {
  return {.schemas = {"max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
                      "dilation=[1], bool ceil_mode=False) -> Tensor"},
          .summary = "the largest element of each window of a sequence",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,9), [3], [2], [1]", "x(3,8), [2]", "x(1,2,10), [3], [1], [1], [2]"}};
}
}  // namespace tosaic
