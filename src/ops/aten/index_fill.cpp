// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Positions are compared with the indices, which may repeat.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index");
  if (x.rank() == 0) return b.like(x, call.number("value"));
  const int axis = call.axis("dim", x.rank());
  const std::int64_t size = x.dim(axis), count = index.shape().elements();
  std::vector<std::int64_t> iota, dims(static_cast<std::size_t>(x.rank()), 1);
  for (std::int64_t i = 0; i < size; ++i) iota.push_back(i);
  index = checked_indices(wrapped_indices(b.reshape(index, {1, count}), size), size);
  Val hit = b.binary(tosa::op::equal, b.integers(iota, index.dtype(), {size, 1}), index);
  dims[static_cast<std::size_t>(axis)] = size;
  return b.select(b.reshape(b.reduce(tosa::op::reduce_any, hit, {1}, false), Shape(dims)),
                  b.like(x, call.number("value")), x);
}
}  // namespace

AtenOp aten_index_fill() {
  return {.schemas = {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                      "index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)"},
          .summary = "a copy of x with one value at given indices of a dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(4,3), 0, l(0,4,2), 7.5", "x(2,5), -1, l(-5,0,2), 0"}};
}
}  // namespace tosaic
