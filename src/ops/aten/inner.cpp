// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Sums over the last dims of both: self times the transpose of other.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), y = call.tensor("other");
  if (x.rank() == 0 || y.rank() == 0) return calls::mul(x, y);
  if (x.dim(-1) != y.dim(-1))
    b.refuse("aten.inner.shape", "shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
  std::vector<std::int64_t> dims(x.shape().sizes().begin(), x.shape().sizes().end() - 1);
  dims.insert(dims.end(), y.shape().sizes().begin(), y.shape().sizes().end() - 1);
  const std::int64_t k = x.dim(-1);
  Val rows = calls::view(x, {x.shape().elements() / k, k}), columns = calls::view(y, {y.shape().elements() / k, k});
  return calls::view(b.aten(aten::op::linear, {rows, columns, std::nullopt}), Shape(dims));
}
}  // namespace

AtenOp aten_inner() {
  return {
      .schemas = {"inner(Tensor self, Tensor other) -> Tensor"},
      .summary = "products summed over the last dims",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(4), x(4) # int16x8=target.unsupported: 16-bit weights that are computed have no convolution",
                 "x(2,3), x(4,3) # int16x8=target.unsupported: 16-bit weights that are computed have no convolution"}};
}
}  // namespace tosaic
