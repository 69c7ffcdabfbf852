// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// PyTorch writes its default dtype, int64, as the number 4; here it is the one that nothing else is said of.
Vals lower(Builder& b, const Call& call) {
  const std::int64_t rows = call.integer("row"), columns = call.integer("col"), offset = call.integer("offset");
  creation::check_size(call, Shape{rows, columns});
  const bool lower_half = call.schema().name == "tril_indices";
  std::vector<double> row, column;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      if (lower_half ? c - r <= offset : c - r >= offset) {
        row.push_back(static_cast<double>(r));
        column.push_back(static_cast<double>(c));
      }
  const auto count = static_cast<std::int64_t>(row.size());
  if (count == 0) b.refuse("aten.empty-tensor", "the triangle is empty: TOSA has no tensors without elements");
  row.insert(row.end(), column.begin(), column.end());
  return b.reshape(creation::vector(call, row, creation::dtype_of(call, DType::i32)), {2, count});
}
}  // namespace

AtenOp aten_tril_indices() {
  return {
      .schemas = {"tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, "
                  "Device? device=None, bool? pin_memory=None) -> Tensor",
                  "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, "
                  "Device? device=None, bool? pin_memory=None) -> Tensor"},
      .summary = "rows and columns of a matrix's lower or upper triangle",
      .rule = Rule::index,
      .lower = {lower},
      .domain = {"3, 3", "3, 3, dtype=i64", "4, 3, -1, dtype=i64", "2, 5, 2, dtype=i32", "triu_indices.default: 3, 3",
                 "triu_indices.default: 4, 3, 1, dtype=i64", "triu_indices.default: 3, 5, -1, dtype=i32"}};
}
}  // namespace tosaic
