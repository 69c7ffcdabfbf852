// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Doubling: after step k each element holds the product of the 2^k elements that end at it. Each step has a range of
// its own in integers.
Val products(Val x, int axis) {
  const std::int64_t size = x.dim(axis);
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    std::vector<std::int64_t> pad(static_cast<std::size_t>(2 * (x.rank() - axis)), 0);  // of the last dim first
    pad[pad.size() - 2] = shift;
    const Val before = x.builder().aten(aten::op::constant_pad_nd, {calls::slice(x, axis, 0, size - shift)},
                                        {{"pad", std::move(pad)}, {"value", 1.0}});
    x = calls::mul(x, before);
  }
  return x;
}
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const auto as = [&](DType type) {
    return x.dtype() == type ? x : b.aten(aten::op::_to_copy, {x}, {{"dtype", type}});
  };
  if (auto dtype = call.dtype("dtype")) x = as(*dtype);
  if (!is_float(x.dtype())) {  // PyTorch multiplies integers and booleans in i64; where that was narrowed, in i32
    const bool wide = !call.declared().empty() && call.declared()[0].dtype == DType::i64;
    x = as(wide ? DType::i64 : sum_dtype(x.dtype()));
  }
  return x.rank() == 0 ? b.aten(aten::op::clone, {x}) : products(x, call.axis("dim", x.rank()));
}
}  // namespace

AtenOp aten_cumprod() {
  return {
      .schemas = {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"},
      .summary = "running products along a dim",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(2,5), 1", "i(1,4,6,2), 0", "b(2,4), -1", "u(0.5,1.5,3,17), 1", "x(2,5), 1, dtype=f32", "x(), 0"}};
}
}  // namespace tosaic
