// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const auto shape = view.constant_integers(1);
  if (!shape) return std::nullopt;
  std::int64_t elements = 1;
  for (std::int64_t dim : *shape) {
    if (dim < 1) return broken("reshape.shape-value", "dim {} of the new shape must be at least 1", dim);
    if (__builtin_mul_overflow(elements, dim, &elements))
      return broken("reshape.shape-value", "the new shape fits no tensor");
  }
  if (elements != view.in(0).shape.elements())
    return broken("reshape.element-count", "the operand [{}] has {} elements, the new shape [{}] has {}",
                  to_string(view.in(0).shape), view.in(0).shape.elements(), to_string(Shape(*shape)), elements);
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  auto shape = view.constant_integers(1);
  if (!shape) return {};
  TensorType type = view.in(0);
  if (type.shape.sizes() == *shape) return {type};
  type.shape = Shape(std::move(*shape));
  if (type.scales && !type.scales->per_tensor()) type.scales.reset();  // channels no longer lie along one dim
  return {std::move(type)};
}

Status eval(const Run& run) {
  std::memcpy(run.out[0].data, run.in[0].data, run.out[0].type.storage_bytes());
  return {};
}
}  // namespace

Op tosa_reshape() {
  Op op = layout_row("reshape", 57, "the same elements in another shape");
  op.inputs = {{"input1", "in_out"}, {"shape", "shape", 1, 1, false, true}};
  op.outputs = {{"output", "in_out"}};
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::first;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::view_copy, {calls.operand(0)}, {{"size", node.out().shape.sizes()}});
  };
  return op;
}
}  // namespace tosaic::tosa
