// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The distance element by element, then PyTorch's reduction: 0 none, 1 mean, 2 sum.
Vals lower(Builder& b, const Call& call) {
  Val d = calls::sub(call.tensor("self"), call.tensor("target"));
  Val y = call.schema().name == "l1_loss" ? calls::abs(d) : calls::mul(d, d);
  const std::int64_t reduction = call.integer("reduction");
  if (reduction == 0) return y;
  return b.aten(reduction == 1 ? aten::op::mean : aten::op::sum, {y});
}
}  // namespace

AtenOp aten_mse_loss() {
  return {.schemas = {"mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
                      "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor"},
          .summary = "the mean square (absolute) distance of two tensors",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,4), x(3,4)", "x(3,4), x(3,4), 0", "l1_loss.default: x(3,4), x(3,4), 2"}};
}
}  // namespace tosaic
