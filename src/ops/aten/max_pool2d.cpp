// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/layout.h"
#include "ops/lowering/pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals values(Builder& b, const Call& call) {
  Batched x = batched(call.tensor("self"), 4, "max_pool2d");
  return x.restore(channels_first(max_pooled(b, call.schema().name, channels_last(x.x), pooling_of(b, call, 2))));
}

Vals values_and_indices(Builder& b, const Call& call) {
  Vals results = values(b, call);
  if (call.schema().returns.size() < 2) return results;
  Batched x = batched(call.tensor("self"), 4, "max_pool2d");
  Val indices = max_indices(b, call.schema().name, channels_last(x.x), pooling_of(b, call, 2));
  results.push_back(b.cast(x.restore(channels_first(indices)), DType::i32));
  return results;
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "max_pool2d") return std::nullopt;
  Node made = call.renamed("max_pool2d_with_indices");
  call.add_result(made, DType::i64, call.out().shape);
  return made;
}
}  // namespace

AtenOp aten_max_pool2d() {
  return {
      .schemas = {"max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
                  "bool ceil_mode=False) -> Tensor",
                  "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
                  "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"},
      .summary = "the largest element of each window of an image",
      .rule = Rule::transparent,
      .lower = {values_and_indices, values},
      .domain = {"x(1,3,8,8), [2,2]", "x(1,2,9,7), [3,3], [2,2], [1,1]", "x(1,2,9,8), [3,2], [2,3], [1,1], [1,1], True",
                 "x(2,7,7), [2,2], [3,3]", "x(1,2,11,10), [3,3], [2,1], [1,1], [2,3]",
                 "max_pool2d_with_indices.default: x(1,2,6,6), [2,2]",
                 "max_pool2d_with_indices.default: x(2,9,8), [3,2], [2,3], [1,1], [1,2], True",
                 "max_pool2d_with_indices.default: f(1,2,6,7), [3,3], [1,1], [1,1]",
                 "max_pool2d_with_indices.default: n(1,2,6,6), [3,3], [2,2], [1,1]"},
      .core = core};
}
}  // namespace tosaic
