// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }
}  // namespace

AtenOp aten_alias_copy() {
  return {.schemas = {"alias_copy(Tensor self) -> Tensor"},
          .summary = "a copy of self",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)"}};
}
}  // namespace tosaic
