// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/tosa_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const TensorType type = x.type();
  const auto& name = call.schema().name;
  std::vector<int> axes;
  if (name == "fliplr")
    axes = {1};
  else if (name == "flipud")
    axes = {0};
  else if (!call.ints("dims").empty())
    axes = call.axes("dims", x.rank());
  for (int axis : axes) {
    if (axis >= x.rank()) b.refuse("aten.flip.rank", name + " of a tensor of shape " + to_string(type.shape));
    x = b.tosa(tosa::op::reverse, {x}, {{"axis", std::int64_t{axis}}});
    b.graph()[x.id()].type = type;
  }
  return x;
}
}  // namespace

AtenOp aten_flip() {
  return {.schemas = {"flip(Tensor self, int[] dims) -> Tensor", "fliplr(Tensor self) -> Tensor",
                      "flipud(Tensor self) -> Tensor"},
          .summary = "reverses the order of the elements along dims",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,4), [0]", "x(2,3,4), [-1,0]", "fliplr.default: x(2,3)", "flipud.default: x(3,2)"}};
}
}  // namespace tosaic
