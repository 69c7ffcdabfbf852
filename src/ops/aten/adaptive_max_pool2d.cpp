// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The indices, the second result of PyTorch's, have no form in TOSA: only the values are given.
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 4, "adaptive_max_pool2d");
  return x.restore(channels_first(
      adaptive_pooled(b, "adaptive_max_pool2d", channels_last(x.x), call.spread("output_size", 2), Pool::maximum)));
}
}  // namespace

AtenOp aten_adaptive_max_pool2d() {
  return {.schemas = {"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)"},
          .summary = "the largest elements of a given number of equal tiles of an image",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,3,8,8), [2,4] # results=1: the indices have no form in TOSA",
                     "x(1,2,7,5), [3,3] # results=1: the indices have no form in TOSA"}};
}
}  // namespace tosaic
