// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/matmul.h"
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return matrix_product(b, "matmul", call.tensor("self"), call.tensor("other"));
}

std::optional<Node> core(const CoreCall& call) {
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  if (a.rank() == 2 && b.rank() == 2) return call.call(aten::op::mm, call.node.inputs);
  if (a.rank() == 3 && b.rank() == 3 && a[0] == b[0]) return call.call(aten::op::bmm, call.node.inputs);
  return std::nullopt;
}
}  // namespace

AtenOp aten_matmul() {
  return {
      .schemas = {"matmul(Tensor self, Tensor other) -> Tensor", "linalg_matmul(Tensor self, Tensor other) -> Tensor"},
      .summary = "the matrix product over the last two dims, the others broadcast",
      .rule = Rule::accumulate,
      .lower = {lower},
      .domain = {"x(3,4), x(4,5)", "x(2,3,4), x(4,5)", "x(2,3,4), x(2,4,5)", "x(2,1,3,4), x(3,4,5)", "x(4), x(2,4,3)",
                 "x(2,3,4), x(4)", "x(5), x(5)", "x(3,4), x(2,4,5)", "x(2,3,4), const(x(4,5))",
                 "linalg_matmul.default: x(3,4), x(4,2)"},
      .core = core};
}
}  // namespace tosaic
