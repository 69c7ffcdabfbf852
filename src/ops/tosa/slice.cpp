// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const Shape& shape = view.in(0).shape;
  for (std::size_t i : {1u, 2u})
    if (Check c = check_length(view, i, shape.rank())) return c;
  const auto start = view.constant_integers(1), size = view.constant_integers(2);
  for (int i = 0; i < shape.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (start && (*start)[k] < 0) return broken("slice.start", "start {} of dim {} is negative", (*start)[k], i);
    if (size && (*size)[k] <= 0) return broken("slice.size", "size {} of dim {} must be at least 1", (*size)[k], i);
    const auto highest = shape[i].bounds().highest;
    if (start && size && highest && (*start)[k] > *highest - (*size)[k])
      return broken("slice.bounds", "start {} and size {} go beyond dim {}, which is {}", (*start)[k], (*size)[k], i,
                    to_string(shape[i]));
  }
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  const auto start = view.constant_integers(1), size = view.constant_integers(2);
  if (!size) return {};
  TensorType type = view.in(0);
  for (int i = 0; i < type.rank(); ++i) {
    const std::int64_t length = (*size)[static_cast<std::size_t>(i)];
    type.shape.set(i, length);
  }
  if (type.scales && !type.scales->per_tensor()) {
    const auto axis = static_cast<std::size_t>(type.scales->axis);
    if (!start) return {type.with(std::nullopt)};
    std::vector<std::int64_t> channels(static_cast<std::size_t>((*size)[axis]));
    std::iota(channels.begin(), channels.end(), (*start)[axis]);
    type.scales = channels_taken(*type.scales, channels);
  }
  return {std::move(type)};
}

Status eval(const Run& run) {
  const Shape& in = run.in[0].type.shape;
  const auto start = integers_of(run.in[1]);
  Walk from = row_major(in);
  for (int i = 0; i < in.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    from.offset += start[k] * from.strides[k];
  }
  return copy_along(run, from);
}
}  // namespace

Op tosa_slice() {
  Op op = layout_row("slice", 59, "a box cut out of a tensor");
  op.inputs.push_back({"start", "shape", 1, 1, false, true});
  op.inputs.push_back({"size", "shape", 1, 1, false, true});
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::first;
  op.moves = Moves::some;
  // A call for each dim that is cut.
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const auto start = *node.constant_integers(1), size = *node.constant_integers(2);
    ValueId x = calls.operand(0);
    std::vector<std::size_t> cut;
    for (std::size_t d = 0; d < start.size(); ++d)
      if (size[d] != node.in(0).shape.size(static_cast<int>(d))) cut.push_back(d);
    for (std::size_t d : cut) {
      const auto dim = static_cast<std::int64_t>(d);
      const Attrs attrs{{"dim", dim}, {"start", start[d]}, {"end", start[d] + size[d]}, {"step", std::int64_t{1}}};
      if (d == cut.back()) return calls.gives(aten::op::slice_copy_Tensor, {x}, attrs);
      TensorType type = calls.type(x);
      type.shape.set(static_cast<int>(d), size[d]);
      x = calls.made(aten::op::slice_copy_Tensor, {x}, attrs, type);
    }
    return calls.gives(aten::op::clone, {x});
  };
  return op;
}
}  // namespace tosaic::tosa
