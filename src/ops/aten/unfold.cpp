// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0) b.refuse("aten.unfold.rank", "unfold of a scalar");
  const int axis = call.axis("dimension", x.rank());
  const std::int64_t size = call.integer("size"), step = call.integer("step");
  if (size < 1 || step < 1 || size > x.dim(axis))
    b.refuse("aten.unfold.size", "windows of " + std::to_string(size) + " every " + std::to_string(step) +
                                     " in a dim of " + std::to_string(x.dim(axis)));
  const std::int64_t count = (x.dim(axis) - size) / step + 1;
  std::vector<std::int64_t> positions;
  for (std::int64_t w = 0; w < count; ++w)
    for (std::int64_t k = 0; k < size; ++k) positions.push_back(w * step + k);
  // The windows as two dims in place of the axis, then the window's own dim last.
  Val y = selected(x, axis, b.integers(positions, DType::i32, {count, size}));
  std::vector<int> last;
  for (int i = 0; i < y.rank(); ++i)
    if (i != axis + 1) last.push_back(i);
  last.push_back(axis + 1);
  return b.transpose(y, last);
}
}  // namespace

AtenOp aten_unfold() {
  return {.schemas = {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
                      "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor"},
          .summary = "windows along a dim, as a new last dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,7), 1, 3, 2", "x(5,2), 0, 2, 1", "unfold_copy.default: x(2,3,6), -1, 3, 3"}};
}
}  // namespace tosaic
