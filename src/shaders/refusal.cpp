// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/tosa_operators.h"
#include "plan/movement.h"
#include "shaders/compile.h"
#include "shaders/elements.h"
#include "shaders/kernels.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

bool has_numbers(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i4:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i48:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f32: return true;
    default: return false;
  }
}

std::optional<tosa::Violation> check_tensor(const TensorType& given) {
  const TensorType type = largest(given);
  if (type.dtype == DType::shape) return std::nullopt;
  if (!has_numbers(type.dtype))
    return tosa::Violation{"vulkan.dtype", fmt::format("there are no shaders for {}", name_of(type.dtype))};
  if (type.storage_bytes() > vulkan_program::most_range_bytes)
    return tosa::Violation{"vulkan.storage-range", fmt::format("a tensor of {} bytes; every Vulkan device takes {}",
                                                               type.storage_bytes(), vulkan_program::most_range_bytes)};
  return std::nullopt;
}

// The reciprocals of all counts lie in a table.
constexpr std::int64_t most_pool_window = 1 << 16;

}  // namespace

std::optional<tosa::Violation> refusal(const tosa::View& view) {
  const Node& node = view.node();
  const bool known = is_view(node) || !kernel_rows(node).empty() || plan::symbolic_movement_of(view.graph(), node) ||
                     (tosa::find(node.op)->elementwise && has_element_shader(view));
  if (!known)
    return tosa::Violation{"vulkan.no-kernel", fmt::format("there is no shader for {}", tosa::find(node.op)->name)};
  for (const auto* values : {&node.inputs, &node.outputs})
    for (ValueId v : *values)
      if (v != no_value)
        if (auto violation = check_tensor(view.graph()[v].type)) return violation;
  if (node.op == tosa::op::avg_pool2d && is_integer(view.in(0).dtype)) {
    const auto& kernel = view.ints("kernel");
    if (kernel[0] > most_pool_window / std::max<std::int64_t>(kernel[1], 1))
      return tosa::Violation{"vulkan.pool-window", fmt::format("a window of {}x{}; up to {} elements are taken",
                                                               kernel[0], kernel[1], most_pool_window)};
  }
  return std::nullopt;
}

tosa::Spec spec() {
  static constexpr tosa::Product product{"Vulkan", refusal, vulkan_program::most_range_bytes};
  tosa::Spec spec = *tosa::Spec::parse("TOSA-1.0+FP+INT+int16+int4+bf16+fp8e4m3+fp8e5m2+fft");
  spec.product = &product;
  return spec;
}

}  // namespace tosaic::shaders
