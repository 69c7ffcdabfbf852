// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }
}  // namespace

AtenOp aten_positive() {
  return {.schemas = {"positive(Tensor(a) self) -> Tensor(a)"},
          .summary = "self",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)"}};
}
}  // namespace tosaic
