// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }
}  // namespace

AtenOp aten_clone() {
  return {.schemas = {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"},
          .summary = "a copy of self",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)", "i(0,5,4)", "b(4)"}};
}
}  // namespace tosaic
