// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return extreme_along(x, call.axes("dim", x.rank()), call.flag("keepdim"), false);
}
}  // namespace

AtenOp aten_amin() {
  return {.schemas = {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"},
          .summary = "the smallest element, over some dims or all",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4), [1]", "x(2,3,4), [0,-1], True", "x(2,3)"}};
}
}  // namespace tosaic
