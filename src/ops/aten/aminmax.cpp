// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool keep = call.flag("keepdim");
  auto axes = call.axes("dim", x.rank());
  if (call.has("dim")) return {extreme_along(x, axes, keep, false), extreme_along(x, axes, keep, true)};
  Val least = extreme_along(x, axes, true, false), most = extreme_along(x, axes, true, true);
  return keep ? Vals{least, most} : Vals{b.reshape(least, {}), b.reshape(most, {})};
}
}  // namespace

AtenOp aten_aminmax() {
  return {.schemas = {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"},
          .summary = "the smallest and the largest element, along one dim or of all",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4)", "x(2,3,4), dim=1", "x(2,3), dim=-1, keepdim=True"}};
}
}  // namespace tosaic
