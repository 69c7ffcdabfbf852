// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/matmul.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool vdot = call.schema().argument("other") != nullptr;
  return matrix_product(b, call.schema().name, call.tensor("self"), call.tensor(vdot ? "other" : "tensor"));
}
}  // namespace

AtenOp aten_dot() {
  return {.schemas = {"dot(Tensor self, Tensor tensor) -> Tensor", "vdot(Tensor self, Tensor other) -> Tensor"},
          .summary = "the inner product of two vectors",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(7), x(7)", "vdot.default: x(5), x(5)"}};
}
}  // namespace tosaic
