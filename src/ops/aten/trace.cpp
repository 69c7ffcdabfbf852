// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() != 2) b.refuse("aten.trace.rank", "a tensor of shape " + to_string(x.shape()) + " is no matrix");
  return calls::sum(b.aten(aten::op::diagonal_copy, {x}), {0}, false);
}
}  // namespace

AtenOp aten_trace() {
  return {.schemas = {"trace(Tensor self) -> Tensor"},
          .summary = "the sum of a matrix's diagonal",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,3)", "x(2,5)", "i(-9,9,4,3)"}};
}
}  // namespace tosaic
