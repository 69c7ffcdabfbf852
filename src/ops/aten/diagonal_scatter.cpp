// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The matrices' elements in row-major order: those on the diagonal take one of src, the others stay.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), source = call.tensor("src");
  const int first = call.axis("dim1", x.rank()), second = call.axis("dim2", x.rank());
  const std::int64_t offset = call.integer("offset");
  if (x.rank() < 2 || first == second) b.refuse("aten.diagonal.dims", "a diagonal of shape " + to_string(x.shape()));
  const std::int64_t rows = x.dim(first), columns = x.dim(second);
  std::vector<std::int64_t> taken, mask, dims;
  std::int64_t length = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const bool hit = c - r == offset;
      mask.push_back(hit);
      taken.push_back(hit ? length++ : 0);
    }
  std::vector<int> order, back(static_cast<std::size_t>(x.rank()));
  for (int i = 0; i < x.rank(); ++i)
    if (i != first && i != second) {
      order.push_back(i);
      dims.push_back(x.dim(i));
    }
  order.push_back(first);
  order.push_back(second);
  for (int i = 0; i < x.rank(); ++i) back[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = i;
  dims.push_back(length);
  if (length == 0) return x;
  if (source.shape() != Shape(dims))
    b.refuse("aten.diagonal_scatter.shape",
             "a source of shape " + to_string(source.shape()) + " for a diagonal of shape " + to_string(Shape(dims)));
  Val whole = b.transpose(x, order);
  Val spread = selected(source, source.rank() - 1, b.integers(taken, DType::i32, {rows * columns}));
  Val y = b.select(b.integers(mask, DType::boolean, {rows, columns}), b.reshape(spread, whole.shape()), whole);
  return b.transpose(y, back);
}
}  // namespace

AtenOp aten_diagonal_scatter() {
  return {.schemas = {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"},
          .summary = "a copy of the first tensor in which a diagonal is replaced by the second",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(3,3), x(3)", "x(3,5), x(3), 1", "x(4,2), x(2), -2", "x(2,3,4), x(3,2), 0, 2, 0",
                     "i(-9,9,3,3), i(-9,9,2), -1"}};
}
}  // namespace tosaic
