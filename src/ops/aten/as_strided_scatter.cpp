// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Which element goes where, as the strided look at the places' own numbers says; the others stay.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), source = call.tensor("src");
  const std::int64_t n = x.shape().elements();
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) numbers.push_back(i);
  Attrs attrs{{"size", call.ints("size")}, {"stride", call.ints("stride")}};
  if (call.has("storage_offset")) attrs.set("storage_offset", call.integer("storage_offset"));
  Val looked = b.aten(aten::op::as_strided_copy, {b.integers(numbers, DType::i32, {n})}, attrs);
  if (!looked.is_constant() || looked.shape() != source.shape())
    b.refuse("aten.as_strided_scatter.shape",
             "a source of shape " + to_string(source.shape()) + " for a look of shape " + to_string(looked.shape()));
  std::vector<std::int64_t> taken(numbers.size(), 0), mask(numbers.size(), 0);
  const auto offsets = b.graph()[looked.id()].constant.as<std::int32_t>();
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const auto at = static_cast<std::size_t>(offsets[k]);
    if (mask[at])
      b.refuse("aten.as_strided_scatter.overlap", "two elements of the source go to one element of the result");
    mask[at] = 1;
    taken[at] = static_cast<std::int64_t>(k);
  }
  Val flat = b.reshape(source, {source.shape().elements()});
  Val spread = b.reshape(selected(flat, 0, b.integers(taken, DType::i32, {n})), x.shape());
  return b.select(b.integers(mask, DType::boolean, x.shape()), spread, x);
}
}  // namespace

AtenOp aten_as_strided_scatter() {
  return {.schemas = {"as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
                      "storage_offset=None) -> Tensor"},
          .summary = "a copy of the first tensor in which the elements that strides select are replaced by the second",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(3,4), x(2,3), [2,3], [4,1]", "x(4,4), x(4), [4], [5]", "i(-9,9,10), i(-9,9,3), [3], [2], 3"}};
}
}  // namespace tosaic
