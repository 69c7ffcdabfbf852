// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View& view) {
  TensorType type = view.in(0);
  if (type.scales && type.scales->axis == view.integer("axis")) {
    std::reverse(type.scales->scale.begin(), type.scales->scale.end());
    std::reverse(type.scales->zero_point.begin(), type.scales->zero_point.end());
  }
  return {std::move(type)};
}

Status eval(const Run& run) {
  const auto axis = static_cast<std::size_t>(run.view.integer("axis"));
  const Shape& shape = run.in[0].type.shape;
  Walk from = row_major(shape);
  from.offset = (shape.size(static_cast<int>(axis)) - 1) * from.strides[axis];
  from.strides[axis] = -from.strides[axis];
  return copy_along(run, from);
}
}  // namespace

Op tosa_reverse() {
  Op op = layout_row("reverse", 58, "the order of elements along an axis reversed");
  op.attrs = {{"axis", AttrKind::i32}};
  op.infer = infer;
  op.check = check_axis;
  op.eval = eval;
  op.bounds = bounds::first;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::flip, {calls.operand(0)}, {{"dims", std::vector<std::int64_t>{node.integer("axis")}}});
  };
  return op;
}
}  // namespace tosaic::tosa
