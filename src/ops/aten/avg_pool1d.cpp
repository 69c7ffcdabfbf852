// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 3, "avg_pool1d");
  Pooling p = pooling_of(b, call, 1);
  p.count_include_pad = call.flag("count_include_pad");
  Val y = avg_pooled(b, "avg_pool1d", channels_last(b.unsqueeze(x.x, 2)), p);
  return x.restore(b.squeeze(channels_first(y), {2}));
}
}  // namespace

AtenOp aten_avg_pool1d() {
  return {.schemas = {"avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
                      "ceil_mode=False, bool count_include_pad=True) -> Tensor"},
          .summary = "the mean of each window of a sequence",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,9), [3], [2], [1]", "x(3,8), [2]", "x(1,2,10), [4], [3], [1], True, False"}};
}
}  // namespace tosaic
