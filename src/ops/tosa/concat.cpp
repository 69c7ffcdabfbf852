// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  if (view.inputs() == 0) return broken("concat.empty", "there is nothing to concatenate");
  if (Check c = check_axis(view)) return c;
  const Shape& first = view.in(0).shape;
  const std::int64_t axis = view.integer("axis");
  for (std::size_t k = 1; k < view.inputs(); ++k) {
    const Shape& shape = view.in(k).shape;
    if (shape.rank() != first.rank())
      return broken("concat.rank-mismatch", "tensor {} has rank {}, tensor 0 has rank {}", k, shape.rank(),
                    first.rank());
    for (int i = 0; i < first.rank(); ++i)
      if (i != axis && shape[i] != first[i])
        return broken("concat.dim-mismatch", "dim {} of tensor {} is {}, that of tensor 0 is {}", i, k,
                      to_string(shape[i]), to_string(first[i]));
  }
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  const int axis = static_cast<int>(view.integer("axis"));
  TensorType type = view.in(0).with(std::nullopt);
  for (std::size_t k = 1; k < view.inputs(); ++k) {
    const Shape& part = view.in(k).shape;
    type.shape.set(axis, type.shape[axis] + part[axis]);
  }
  return {std::move(type)};
}

Status eval(const Run& run) {
  const auto axis = static_cast<std::size_t>(run.view.integer("axis"));
  const std::size_t element_bytes = storage_size(run.out[0].type.dtype);
  Walk to = row_major(run.out[0].type.shape);
  for (const TensorView& part : run.in) {
    copy_elements(part.type.shape, element_bytes, part.data, row_major(part.type.shape), run.out[0].data, to);
    to.offset += part.type.shape.size(static_cast<int>(axis)) * to.strides[axis];
  }
  return {};
}
}  // namespace

Op tosa_concat() {
  Op op = layout_row("concat", 55, "tensors concatenated along an axis");
  op.inputs[0].list = true;
  op.attrs = {{"axis", AttrKind::i32}};
  op.types = either("in_out", {DType::boolean}) + integers("in_out", {DType::i8, DType::i32}) +
             rows({Feature::int16}, "in_out", {DType::i16}) + floats("in_out") + fp8s("in_out") + int64s("in_out");
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::any;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < node.inputs(); ++i) parts.push_back(calls.operand(i));
    return calls.gives(aten::op::cat, std::move(parts), {{"dim", node.integer("axis")}});
  };
  return op;
}
}  // namespace tosaic::tosa
