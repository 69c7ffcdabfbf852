// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.clamp(call.tensor("self"), 0.0, std::numeric_limits<double>::infinity());
}
}  // namespace

AtenOp aten_relu() {
  return {.schemas = {"relu(Tensor self) -> Tensor", "relu_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "max(x, 0), element by element",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(1,4,5,5)"}};
}
}  // namespace tosaic
