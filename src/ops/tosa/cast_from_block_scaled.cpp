// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/block_scaled.h"
#include "ops/definitions/window.h"

namespace tosaic::tosa {
namespace {

std::vector<TensorType> infer(const View& view) {
  const DType real = view.node().outputs.empty() ? DType::f32 : view.out().dtype;
  return {{real, view.in(0).shape, std::nullopt}};
}

Check check(const View& view) { return block_scaled::check(view, 0, 1); }

Status eval(const Run& run) {
  store_doubles(run.out[0], 0, block_scaled::as_doubles(run.in[0], run.in[1]));
  return {};
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const ValueId real = block_scaled::as_floats(d, d.operand(0), d.operand(1));
  return {d.result().dtype == DType::f32 ? real : d.cast(real, d.result().dtype)};
}
}  // namespace

Op tosa_cast_from_block_scaled() {
  return {
      .name = "cast_from_block_scaled",
      .schema_number = 77,
      .spirv_number = 0xffff,
      .summary = "the floats that elements with a scale for each block stand for",
      .inputs = {{"input_data", "element", 1}, {"input_scale", block_scaled::scale_type, 1}},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output_data", "out", 1}},
      .types = block_scaled::elements_and_floats("element", "out"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
