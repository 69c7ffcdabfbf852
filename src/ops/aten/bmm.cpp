// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/matmul.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return matrix_product(b, "bmm", call.tensor("self"), call.tensor("mat2")); }
}  // namespace

AtenOp aten_bmm() {
  return {.schemas = {"bmm(Tensor self, Tensor mat2) -> Tensor"},
          .summary = "products of matrices, pair by pair",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,4,5)", "x(1,3,4), x(1,4,1)"}};
}
}  // namespace tosaic
