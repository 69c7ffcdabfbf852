// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 3, "adaptive_avg_pool1d");
  const auto size = call.ints("output_size");
  if (size.size() != 1) b.refuse("aten.adaptive_avg_pool1d.output-size", "output_size must be one number");
  Val y = adaptive_pooled(b, "adaptive_avg_pool1d", channels_last(b.unsqueeze(x.x, 2)), {1, size[0]}, Pool::average);
  return x.restore(b.squeeze(channels_first(y), {2}));
}
}  // namespace

AtenOp aten_adaptive_avg_pool1d() {
  return {.schemas = {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor"},
          .summary = "the means of a given number of equal stretches of a sequence",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,8), [4]", "x(3,7), [3]"}};
}
}  // namespace tosaic
