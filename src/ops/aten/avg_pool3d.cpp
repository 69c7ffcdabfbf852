// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 5, "avg_pool3d");
  Pooling p = pooling_of(b, call, 3);
  p.count_include_pad = call.flag("count_include_pad");
  if (call.has("divisor_override")) p.divisor = call.integer("divisor_override");
  return x.restore(channels_first(volume_pooled(b, "avg_pool3d", channels_last(x.x), p, Pool::average)));
}
}  // namespace

AtenOp aten_avg_pool3d() {
  return {.schemas = {"avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
                      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"},
          .summary = "the mean of each window of a volume",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,5,6,7), [2,3,2], [2,2,1], [1,1,0]", "x(1,2,5,6,7), [2,3,3], [2,2,2], [1,1,1], True, False",
                     "x(2,4,4,4), [2,2,2], [2,2,2], [0,0,0], False, True, 3 # steps=3: averages are rounded to "
                     "quantised values twice, then multiplied by 8/3"}};
}
}  // namespace tosaic
