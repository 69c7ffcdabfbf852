// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_matmul.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return matrix_product(b, "matmul", call.tensor("self"), call.tensor("other"));
}
}  // namespace

AtenOp aten_matmul() {
  return {
      .schemas = {"matmul(Tensor self, Tensor other) -> Tensor", "linalg_matmul(Tensor self, Tensor other) -> Tensor"},
      .summary = "the matrix product over the last two dims, the others broadcast",
      .rule = Rule::accumulate,
      .lower = {lower},
      .domain = {"x(3,4), x(4,5)", "x(2,3,4), x(4,5)", "x(2,3,4), x(2,4,5)", "x(2,1,3,4), x(3,4,5)", "x(4), x(2,4,3)",
                 "x(2,3,4), x(4)", "x(5), x(5)", "x(3,4), x(2,4,5)", "linalg_matmul.default: x(3,4), x(4,2)"}};
}
}  // namespace tosaic
