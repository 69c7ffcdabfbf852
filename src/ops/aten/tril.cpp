// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
bool keeps(const std::string& op, std::int64_t row, std::int64_t column, std::int64_t diagonal) {
  return op == "tril" ? column - row <= diagonal : column - row >= diagonal;
}
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() < 2) b.refuse("aten.tril.rank", "a tensor of shape " + to_string(x.shape()) + " is no matrix");
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1), diagonal = call.integer("diagonal");
  std::vector<std::int64_t> mask;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) mask.push_back(keeps(call.schema().name, r, c, diagonal));
  return b.select(b.integers(mask, DType::boolean, {rows, columns}), x, b.like(x, 0.0));
}
}  // namespace

AtenOp aten_tril() {
  return {
      .schemas = {"tril(Tensor self, SymInt diagonal=0) -> Tensor", "triu(Tensor self, SymInt diagonal=0) -> Tensor"},
      .summary = "the lower or upper triangle of a matrix, zeros elsewhere",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(4,4)", "x(2,3,5), 1", "triu.default: x(4,3), -1", "triu.default: i(-9,9,3,3), 2"}};
}
}  // namespace tosaic
