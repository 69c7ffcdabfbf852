// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/bitwise.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return python_bitwise(b, call, aten::op::bitwise_or_Tensor, aten::op::bitwise_or_Scalar);
}

std::optional<Node> core(const CoreCall& call) { return call.renamed("bitwise_or"); }
}  // namespace

AtenOp aten___or__() {
  return {.schemas = {"__or__.Tensor(Tensor self, Tensor other) -> Tensor",
                      "__or__.Scalar(Tensor self, Scalar other) -> Tensor"},
          .summary = "Python's operator on tensors: bitwise_or",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-9,9,12), i(-9,9,12)", "b(6), b(6)", "Scalar: i(-9,9,12), 5"},
          .core = core};
}
}  // namespace tosaic
