// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/definitions/block_scaled.h"

namespace tosaic::tosa {
namespace {

// Nothing in the operand tells the elements' type: it is that of the declared output.
std::vector<TensorType> infer(const View& view) {
  const Shape& shape = view.in(0).shape;
  const DType element = view.node().outputs.empty() ? DType::f8e4m3 : view.out().dtype;
  return {{element, shape, std::nullopt}, {DType::f8ue8m0, block_scaled::scales_shape(shape), std::nullopt}};
}

Check check(const View& view) { return block_scaled::check(view, 0, 0); }

// A block that holds NaN or infinity has NaN as its scale.
Status eval(const Run& run) {
  const DType element = run.view.out(0).dtype;
  const auto blocks = static_cast<std::size_t>(run.out[1].type.shape.elements());
  const std::size_t per_block = static_cast<std::size_t>(block_scaled::block);
  for (std::size_t b = 0; b < blocks; ++b) {
    double largest = 0;
    bool finite = true;
    for (std::size_t i = b * per_block; i < (b + 1) * per_block; ++i) {
      const double value = element_as_double(run.in[0].type.dtype, run.in[0].data, i);
      finite = finite && std::isfinite(value);
      largest = std::max(largest, std::fabs(value));
    }
    const double scale =
        finite ? std::ldexp(1, block_scaled::exponent_for(largest, element)) : std::numeric_limits<double>::quiet_NaN();
    store_double(run.out[1].type.dtype, run.out[1].data, b, scale);
    const double most = block_scaled::form_of(element).greatest;
    for (std::size_t i = b * per_block; i < (b + 1) * per_block; ++i) {
      const double value = element_as_double(run.in[0].type.dtype, run.in[0].data, i) / scale;
      store_double(run.out[0].type.dtype, run.out[0].data, i,
                   std::isnan(value) ? value : std::clamp(value, -most, most));
    }
  }
  return {};
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const DType element = d.result().dtype;
  const auto [elements, scales] = block_scaled::rounded(d, d.operand(0), element);
  return {d.cast(elements, element), d.cast(scales, DType::f8ue8m0)};
}
}  // namespace

Op tosa_cast_to_block_scaled() {
  return {
      .name = "cast_to_block_scaled",
      .schema_number = 78,
      .spirv_number = 0xffff,
      .summary = "floats as elements of a narrow type, and a power of two for each block of them",
      .inputs = {{"input", "in", 1}},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output_data", "element", 1}, {"output_scale", block_scaled::scale_type, 1}},
      .types = block_scaled::elements_and_floats("element", "in"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
