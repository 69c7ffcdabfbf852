// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The two dims become one row-major line, of which every (columns + 1)-th element is taken.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int first = call.axis("dim1", x.rank()), second = call.axis("dim2", x.rank());
  const std::int64_t offset = call.integer("offset");
  if (x.rank() < 2 || first == second) b.refuse("aten.diagonal.dims", "a diagonal of shape " + to_string(x.shape()));
  const std::int64_t rows = x.dim(first), columns = x.dim(second);
  const std::int64_t length = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  if (length < 1)
    b.refuse("aten.diagonal.empty", "diagonal " + std::to_string(offset) + " of a matrix of " + std::to_string(rows) +
                                        "x" + std::to_string(columns) + " is empty");
  std::vector<std::int64_t> positions, dims;
  for (std::int64_t i = 0; i < length; ++i)
    positions.push_back(offset >= 0 ? i * columns + i + offset : (i - offset) * columns + i);
  std::vector<int> permutation;
  for (int i = 0; i < x.rank(); ++i)
    if (i != first && i != second) {
      permutation.push_back(i);
      dims.push_back(x.dim(i));
    }
  permutation.push_back(first);
  permutation.push_back(second);
  dims.push_back(rows * columns);
  Val lines = b.reshape(b.transpose(x, permutation), Shape(dims));
  return selected(lines, lines.rank() - 1, b.integers(positions, DType::i32, {length}));
}
}  // namespace

AtenOp aten_diagonal() {
  return {.schemas = {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
                      "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"},
          .summary = "a diagonal of two dims, as a new last dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,4)", "x(4,3), -1", "x(2,3,4), 1, -1, 0", "diagonal_copy.default: x(3,3)"}};
}
}  // namespace tosaic
