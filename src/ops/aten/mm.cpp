// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/matmul.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return matrix_product(b, "mm", call.tensor("self"), call.tensor("mat2")); }
}  // namespace

AtenOp aten_mm() {
  return {
      .schemas = {"mm(Tensor self, Tensor mat2) -> Tensor"},
      .summary = "the product of two matrices",
      .rule = Rule::accumulate,
      .lower = {lower},
      .domain = {"x(3,4), x(4,5)",
                 "x(1,4), const(x(4,1)) # share=0.02: four products that nearly cancel show the 8 bits of the weights",
                 "i(-9,9,3,4), i(-9,9,4,2)"}};
}
}  // namespace tosaic
