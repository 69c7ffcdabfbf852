// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/layout.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const Shape& shape = view.in(0).shape;
  if (Check c = check_length(view, 1, 2 * shape.rank())) return c;
  if (Check c = check_length(view, 2, 1)) return c;
  const auto padding = view.constant_integers(1);
  if (!padding) return std::nullopt;
  for (std::size_t k = 0; k < padding->size(); ++k) {
    const std::int64_t amount = (*padding)[k];
    if (amount < 0) return broken("pad.negative", "padding {} of dim {} is negative", amount, k / 2);
    if (amount > INT64_MAX / 4) return broken("pad.too-large", "padding {} of dim {} fits no tensor", amount, k / 2);
  }
  return std::nullopt;
}

std::vector<TensorType> infer(const View& view) {
  const auto padding = view.constant_integers(1);
  if (!padding) return {};
  TensorType type = view.in(0).with(std::nullopt);
  for (int i = 0; i < type.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    type.shape.set(i, type.shape[i] + (*padding)[2 * k] + (*padding)[2 * k + 1]);
  }
  return {std::move(type)};
}

// The whole output is filled with pad_const, then the input is laid into the middle.
Status eval(const Run& run) {
  const auto padding = integers_of(run.in[1]);
  const TensorType& out = run.out[0].type;
  const std::size_t element_bytes = storage_size(out.dtype);
  Walk still, to = row_major(out.shape);
  still.strides.assign(static_cast<std::size_t>(out.rank()), 0);
  copy_elements(out.shape, element_bytes, run.in[2].data, still, run.out[0].data, to);
  for (std::size_t i = 0; i < to.strides.size(); ++i) to.offset += padding[2 * i] * to.strides[i];
  copy_elements(run.in[0].type.shape, element_bytes, run.in[0].data, row_major(run.in[0].type.shape), run.out[0].data,
                to);
  return {};
}
}  // namespace

Op tosa_pad() {
  Op op = layout_row("pad", 56, "a tensor padded with one value");
  op.inputs.push_back({"padding", "shape", 1, 1, false, true});
  op.inputs.push_back({"pad_const", "in_out", 1, 1, false, true});
  op.infer = infer;
  op.check = check;
  op.eval = eval;
  op.bounds = bounds::first_or_third;
  op.moves = Moves::some;
  // PyTorch names the last dim first.
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const auto sizes = node.constant_integers(1);
    const Bytes& fill = node.constant(2);
    if (!sizes || fill.null()) return false;
    std::vector<std::int64_t> padding;
    for (std::size_t d = sizes->size() / 2; d-- > 0;)
      padding.insert(padding.end(), {(*sizes)[2 * d], (*sizes)[2 * d + 1]});
    const DType type = node.in(2).dtype;
    const Attr value =
        is_float(type) ? Attr(element_as_double(type, fill.data(), 0)) : Attr(element_as_integer(type, fill.data(), 0));
    return calls.gives(aten::op::constant_pad_nd, {calls.operand(0)}, {{"pad", padding}, {"value", value}});
  };
  return op;
}
}  // namespace tosaic::tosa
