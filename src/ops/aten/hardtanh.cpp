// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.clamp(call.tensor("self"), call.number("min_val"), call.number("max_val"));
}
}  // namespace

AtenOp aten_hardtanh() {
  return {.schemas = {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
                      "hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)"},
          .summary = "x clamped to [min_val, max_val]",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4)", "u(-4,10,2,3,4), 0, 6", "e(28)"}};
}
}  // namespace tosaic
