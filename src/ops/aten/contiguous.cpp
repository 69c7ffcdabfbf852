// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }
}  // namespace

AtenOp aten_contiguous() {
  return {.schemas = {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)"},
          .summary = "self in dense row-major memory, which every tensor is here",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)"}};
}
}  // namespace tosaic
