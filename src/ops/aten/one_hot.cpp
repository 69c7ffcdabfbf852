// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const std::int64_t classes = call.integer("num_classes");
  if (classes < 1)
    b.refuse("aten.one_hot.classes",
             "num_classes " + std::to_string(classes) + " depends on the values: give num_classes");
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < classes; ++i) numbers.push_back(i);
  x = checked_indices(x, classes);
  Val equal = b.binary(tosa::op::equal, b.unsqueeze(x, x.rank()), b.integers(numbers, x.dtype(), {classes}));
  return b.cast(equal, DType::i32);
}
}  // namespace

AtenOp aten_one_hot() {
  return {.schemas = {"one_hot(Tensor self, int num_classes=-1) -> Tensor"},
          .summary = "for each index a row with a one at that index",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"l(0,5,3), 5", "l(0,3,2,4), 4"}};
}
}  // namespace tosaic
