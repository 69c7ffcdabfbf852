// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_layout.h"
#include "ops/aten_pool.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// A maximum over a box is a maximum over its height and width, then over its depth.
Vals lower(Builder& b, const Call& call) {
  Batched whole = batched(call.tensor("self"), 5, "max_pool3d");
  const Pooling p = pooling_of(b, call, 3);
  auto part = [&](std::size_t first, std::size_t count) {
    Pooling q = p;
    for (auto* list : {&q.kernel, &q.stride, &q.padding, &q.dilation}) *list = {list->begin() + static_cast<std::ptrdiff_t>(first), list->begin() + static_cast<std::ptrdiff_t>(first + count)};
    return q;
  };
  Val x = channels_last(whole.x);
  const std::int64_t n = x.dim(0), d = x.dim(1), c = x.dim(4);
  Val planes = max_pooled(b, "max_pool3d", b.reshape(x, {n * d, x.dim(2), x.dim(3), c}), part(1, 2));
  const std::int64_t h = planes.dim(1), w = planes.dim(2);
  Pooling depth = part(0, 1);
  for (auto* list : {&depth.kernel, &depth.stride, &depth.dilation}) list->push_back(1);
  depth.padding.push_back(0);
  Val y = max_pooled(b, "max_pool3d", b.reshape(planes, {n, d, h * w, c}), depth);
  return whole.restore(channels_first(b.reshape(y, {n, y.dim(1), h, w, c})));
}
}  // namespace

AtenOp aten_max_pool3d() {
  return {.schemas = {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor"},
          .summary = "the largest element of each window of a volume",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(1,2,5,6,7), [2,3,2], [2,2,1], [1,1,0]",
                     "x(2,4,4,4), [2,2,2]"}};
}
}  // namespace tosaic
