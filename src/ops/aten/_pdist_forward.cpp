// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The norm of the differences of each row and those after it.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() != 2 || x.dim(0) < 2)
    b.refuse("aten._pdist_forward.shape",
             "distances within shape " + to_string(x.shape()) + ": at least two rows are wanted");
  const std::int64_t rows = x.dim(0);
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = i + 1; j < rows; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  const Shape pairs{static_cast<std::int64_t>(first.size())};
  const auto chosen = [&](const std::vector<std::int64_t>& which) {
    return b.aten(aten::op::index_select, {x, b.integers(which, DType::i32, pairs)}, {{"dim", std::int64_t{0}}});
  };
  return b.aten(aten::op::linalg_vector_norm, {calls::sub(chosen(first), chosen(second))},
                {{"ord", call.number("p")}, {"dim", std::vector<std::int64_t>{-1}}});
}
}  // namespace

AtenOp aten__pdist_forward() {
  return {.schemas = {"_pdist_forward(Tensor self, float p=2) -> Tensor"},
          .summary = "the distances between all pairs of rows of a matrix",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(5,3)", "x(2,3), 1.0", "x(4,3), inf"}};
}
}  // namespace tosaic
