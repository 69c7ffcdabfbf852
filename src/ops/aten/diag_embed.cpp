// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Each row of the matrix is the whole diagonal, of which a mask keeps one element.
Val on_diagonal(Builder& b, const Call& call, Val x, std::int64_t offset) {
  constexpr std::int64_t far = std::int64_t{1} << 28;
  const std::int64_t n = x.dim(-1), size = n + std::abs(std::clamp(offset, -far, far));
  creation::check_size(call, Shape{size, size});
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank()), 0), after = before, mask;
  (offset > 0 ? before : after).back() = std::abs(offset);
  Val row = b.unsqueeze(b.pad(x, before, after, 0.0), x.rank() - 1);
  for (std::int64_t r = 0; r < size; ++r)
    for (std::int64_t c = 0; c < size; ++c) mask.push_back(c - r == offset);
  return b.select(b.integers(mask, DType::boolean, {size, size}), row, b.like(x, 0.0));
}

Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.schema().name == "diagflat") x = b.reshape(x, {x.shape().elements()});
  if (x.rank() == 0) b.refuse("aten.diag_embed.rank", "a scalar has no elements for a diagonal");
  if (call.schema().name == "diagflat") return on_diagonal(b, call, x, call.integer("offset"));
  const int rank = x.rank() + 1, first = call.axis("dim1", rank), second = call.axis("dim2", rank);
  if (first == second) b.refuse("aten.diag_embed.dims", "a diagonal of one dim with itself");
  // A matrix whose rows and columns change places has the opposite offset.
  Val y = on_diagonal(b, call, x, first < second ? call.integer("offset") : -call.integer("offset"));
  std::vector<int> order;
  const int low = std::min(first, second), high = std::max(first, second);
  for (int i = 0, next = 0; i < rank; ++i) order.push_back(i == low ? rank - 2 : i == high ? rank - 1 : next++);
  return b.transpose(y, order);
}
}  // namespace

AtenOp aten_diag_embed() {
  return {.schemas = {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
                      "diagflat(Tensor self, int offset=0) -> Tensor"},
          .summary = "matrices with the last dim on a diagonal, zeros elsewhere",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3)", "x(2,3), 1", "x(2,3), -2", "x(2,3), 1, 0, 2", "x(2,3), 1, 2, 0", "i(-9,9,2,2)", "b(3), -1",
                     "diagflat.default: x(2,2), 1", "diagflat.default: x()"}};
}
}  // namespace tosaic
