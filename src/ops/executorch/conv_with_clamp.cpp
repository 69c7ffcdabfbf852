// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Attrs how;
  for (const char* name : {"stride", "padding", "dilation", "output_padding"}) how.set(name, call.ints(name));
  how.set("transposed", call.flag("transposed"));
  how.set("groups", call.integer("groups"));
  Val y =
      b.aten(aten::op::convolution, {call.tensor("input"), call.tensor("weight"), call.optional_tensor("bias")}, how);
  constexpr double open = std::numeric_limits<double>::infinity();
  const double lowest = call.has("output_min") ? call.number("output_min") : -open;
  const double highest = call.has("output_max") ? call.number("output_max") : open;
  if (lowest == -open && highest == open) return y;
  Attrs bounds;
  if (lowest != -open) bounds.set("min", lowest);
  if (highest != open) bounds.set("max", highest);
  return b.aten(aten::op::clamp, {y}, bounds);
}
}  // namespace

AtenOp aten_conv_with_clamp() {
  return {.schemas = {"et_vk::conv_with_clamp(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
                      "padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, Scalar? "
                      "output_min, Scalar? output_max) -> Tensor"},
          .summary = "a convolution whose result is clamped (ExecuTorch's Vulkan flow)",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(1,3,8,8), const(x(4,3,3,3)), const(x(4)), [2,2], [1,1], [1,1], False, [0,0], 1, -2.0, 6.0",
                     "x(1,4,5,5), const(x(4,1,3,3)), None, [1,1], [1,1], [1,1], False, [0,0], 4, 0, inf",
                     "x(1,3,6), const(x(2,3,3)), const(x(2)), [1], [0], [1], False, [0], 1, None, 1.5"}};
}
}  // namespace tosaic
