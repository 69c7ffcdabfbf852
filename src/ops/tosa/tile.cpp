// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const Shape& shape = view.in(0).shape;
  if (Check c = check_length(view, 1, shape.rank())) return c;
  const auto multiples = view.constant_integers(1);
  for (int i = 0; multiples && i < shape.rank(); ++i) {
    const std::int64_t multiple = (*multiples)[static_cast<std::size_t>(i)];
    std::int64_t dim;
    if (multiple < 1 || (shape[i].is_number() && __builtin_mul_overflow(multiple, shape.size(i), &dim)))
      return broken("tile.multiple", "multiple {} of dim {}, which is {}, gives no tensor", multiple, i,
                    to_string(shape[i]));
  }
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  const auto multiples = view.constant_integers(1);
  if (!multiples) return {};
  TensorType type = view.in(0);
  for (int i = 0; i < type.rank(); ++i) {
    const std::int64_t multiple = (*multiples)[static_cast<std::size_t>(i)];
    if (multiple == 1) continue;
    const Dim dim = type.shape[i];
    type.shape.set(i, dim * multiple);
    if (type.scales && type.scales->axis == i) {
      const std::int64_t old = dim.value();
      std::vector<std::int64_t> channels(static_cast<std::size_t>(multiple * old));
      for (std::size_t c = 0; c < channels.size(); ++c) channels[c] = static_cast<std::int64_t>(c) % old;
      type.scales = channels_taken(*type.scales, channels);
    }
  }
  return {std::move(type)};
}

// Each dim of the output is walked as two, (multiple, dim), and the multiple does not move in the input.
Status eval(const Run& run) {
  const Shape &in = run.in[0].type.shape, &out = run.out[0].type.shape;
  const Walk plain = row_major(in);
  std::vector<std::int64_t> dims;
  Walk from;
  for (int i = 0; i < in.rank(); ++i) {
    dims.insert(dims.end(), {out.size(i) / in.size(i), in.size(i)});
    from.strides.insert(from.strides.end(), {0, plain.strides[static_cast<std::size_t>(i)]});
  }
  const Shape walked(std::move(dims));
  copy_elements(walked, storage_size(run.out[0].type.dtype), run.in[0].data, from, run.out[0].data, row_major(walked));
  return {};
}
}  // namespace

Op tosa_tile() {
  Op op = layout_row("tile", 60, "a tensor repeated along its dims");
  op.inputs.push_back({"multiples", "shape", 1, 1, false, true});
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::first;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::repeat, {calls.operand(0)}, {{"repeats", *node.constant_integers(1)}});
  };
  return op;
}
}  // namespace tosaic::tosa
