// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ir/extent.h"
#include "ops/definitions/block_scaled.h"

namespace tosaic::tosa {
namespace {

std::vector<TensorType> infer(const View& view) {
  const auto dims = view.constant_integers(2);
  if (!dims) return {};
  const Shape shape(*dims);
  return {{view.in(0).dtype, shape, std::nullopt}, {DType::f8ue8m0, block_scaled::scales_shape(shape), std::nullopt}};
}

Check check(const View& view) {
  if (Check c = block_scaled::check(view, 0, 1)) return c;
  const auto dims = view.constant_integers(2);
  if (!dims) return std::nullopt;
  for (const std::int64_t dim : *dims)
    if (dim < 1) return broken("reshape_block_scaled.shape-value", "dim {} of the new shape must be at least 1", dim);
  const Shape given = view.in(0).shape, wanted(*dims);
  if (wanted.rank() == 0 || dims->back() % block_scaled::block != 0)
    return broken("reshape_block_scaled.blocks", "rows of the new shape [{}] are no whole blocks of {}",
                  to_string(wanted), block_scaled::block);
  if (elements_of(given) != elements_of(wanted))
    return broken("reshape_block_scaled.element-count", "the operand [{}] has other elements than the new shape [{}]",
                  to_string(given), to_string(wanted));
  return std::nullopt;
}

Status eval(const Run& run) {
  for (std::size_t i = 0; i < 2; ++i) std::memcpy(run.out[i].data, run.in[i].data, run.out[i].type.storage_bytes());
  return {};
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const auto reshaped = [&](std::size_t i) {
    const TensorType& type = d.type(d.node().outputs[i]);
    const std::vector<std::int64_t>& sizes = type.shape.sizes();
    const ValueId shape = d.constant(DType::shape, {std::ssize(sizes)}, {sizes.begin(), sizes.end()});
    return d.call(op::reshape, {d.operand(i), shape}, type);
  };
  return {reshaped(0), reshaped(1)};
}
}  // namespace

Op tosa_reshape_block_scaled() {
  return {
      .name = "reshape_block_scaled",
      .schema_number = 97,
      .spirv_number = 0xffff,
      .summary = "the same block-scaled elements in another shape, whose rows are whole blocks",
      .inputs = {{"input_data", "element", 1},
                 {"input_scale", block_scaled::scale_type, 1},
                 {.name = "shape", .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output_data", "element", 1}, {"output_scale", block_scaled::scale_type, 1}},
      .types = block_scaled::elements("element"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
