// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/padding.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return padded_with(b, "constant_pad_nd", call.tensor("self"), call.ints("pad"), call.number("value"));
}
}  // namespace

AtenOp aten_constant_pad_nd() {
  return {.schemas = {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"},
          .summary = "a tensor padded with a constant; negative pads crop",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3), [1,2]", "x(2,3,4), [1,0,2,-1], 2.5", "x(2,3), [-1,-1,0,1], -1", "i(-5,5,2,3), [1,1], 7"}};
}
}  // namespace tosaic
