// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 4, "adaptive_avg_pool2d");
  return x.restore(channels_first(
      adaptive_pooled(b, "adaptive_avg_pool2d", channels_last(x.x), call.spread("output_size", 2), Pool::average)));
}

std::optional<Node> core(const CoreCall& call) { return call.renamed("_adaptive_avg_pool2d"); }
}  // namespace

AtenOp aten_adaptive_avg_pool2d() {
  return {.schemas = {"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                      "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"},
          .summary = "the means of a given number of equal tiles of an image",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,3,8,8), [1,1]", "x(1,3,8,6), [4,2]", "x(2,3,10,7), [7,3]", "x(3,4,5), [6,7]",
                     "_adaptive_avg_pool2d.default: x(1,2,7,7), [7,7]"},
          .core = core};
}
}  // namespace tosaic
