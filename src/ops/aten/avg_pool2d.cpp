// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 4, "avg_pool2d");
  Pooling p = pooling_of(b, call, 2);
  p.count_include_pad = call.flag("count_include_pad");
  if (call.has("divisor_override")) p.divisor = call.integer("divisor_override");
  return x.restore(channels_first(avg_pooled(b, "avg_pool2d", channels_last(x.x), p)));
}
}  // namespace

AtenOp aten_avg_pool2d() {
  return {.schemas = {"avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
                      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"},
          .summary = "the mean of each window of an image",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,3,8,8), [2,2]", "x(1,2,9,7), [3,3], [2,2], [1,1]",
                     "x(1,2,9,7), [3,3], [2,2], [1,1], False, False", "x(1,2,8,9), [3,2], [3,2], [1,0], True, True",
                     "x(1,2,8,9), [3,2], [3,2], [1,1], True, False", "x(2,8,8), [3,3], [2,2], [1,1], True, True, 5",
                     "x(1,2,7,7), [2,2], [3,3]"}};
}
}  // namespace tosaic
