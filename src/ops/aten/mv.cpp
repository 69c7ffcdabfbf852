// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/matmul.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return matrix_product(b, "mv", call.tensor("self"), call.tensor("vec")); }
}  // namespace

AtenOp aten_mv() {
  return {.schemas = {"mv(Tensor self, Tensor vec) -> Tensor"},
          .summary = "a matrix times a vector",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(3,4), x(4)"}};
}
}  // namespace tosaic
