// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// The offsets in memory that size, stride and offset name. The reader sees to it that self owns its memory, in
// row-major order from the beginning on.
Ints offsets(Builder& b, const Call& call, Val x) {
  const Ints sizes = call.ints("size"), strides = call.ints("stride");
  if (sizes.size() != strides.size())
    b.refuse("aten.as_strided.rank",
             std::to_string(sizes.size()) + " sizes with " + std::to_string(strides.size()) + " strides");
  std::int64_t count = 1;
  for (auto s : sizes) {
    if (s < 1) b.refuse("aten.empty-tensor", "TOSA has no tensors without elements");
    if (s > (std::int64_t{1} << 28) / count) b.refuse("aten.too-large", "as_strided makes too many elements");
    count *= s;
  }
  Ints all{call.has("storage_offset") ? call.integer("storage_offset") : 0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Ints next;
    for (auto start : all)
      for (std::int64_t k = 0; k < sizes[i]; ++k) next.push_back(start + k * strides[i]);
    all = std::move(next);
  }
  for (auto at : all)
    if (at < 0 || at >= x.shape().elements())
      b.refuse("aten.as_strided.range", "element " + std::to_string(at) + " is outside the memory of " +
                                            std::to_string(x.shape().elements()) + " elements");
  return all;
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const Ints at = offsets(b, call, x);
  const Shape shape(call.ints("size"));
  Val flat = b.reshape(x, {x.shape().elements()});
  bool in_order = true;
  for (std::size_t i = 0; i < at.size(); ++i) in_order &= at[i] == at[0] + static_cast<std::int64_t>(i);
  if (in_order) return b.reshape(b.slice_axis(flat, 0, at[0], shape.elements()), shape);
  return selected(flat, 0, b.integers(at, DType::i32, shape));
}
}  // namespace

AtenOp aten_as_strided() {
  return {
      .schemas = {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
                  "Tensor(a)",
                  "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
                  "Tensor"},
      .summary = "elements of self's memory by sizes, strides and an offset",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(3,4), [2,3], [4,1]", "x(12), [3,4,2], [2,1,3], 1", "x(2,6), [4,3], [3,1]",
                 "i(-9,9,10), [3,4], [3,1]", "x(3,4), [2,2], [4,1], 5", "as_strided_copy.default: x(4,4), [4], [5]"}};
}
}  // namespace tosaic
