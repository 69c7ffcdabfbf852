// SPDX-License-Identifier: Apache-2.0
// A TOSA graph as dispatches of compute shaders: groups, memory and modules, ready to be written.
#pragma once
#include <optional>

#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"
#include "shaders/half_precision.h"

namespace tosaic::shaders {

// Why there is no shader for a node that holds to the standard; the label is "vulkan.no-kernel", "vulkan.dtype",
// "vulkan.storage-range" or "vulkan.pool-window".
std::optional<tosa::Violation> refusal(const tosa::View& view);

// The standard as far as there are shaders, with `refusal` as the product's rules.
tosa::Spec spec();

// How floats of f32 are kept between dispatches: as they are, or activations and weights in 16 bits (half_precision.h).
enum class Precision : std::uint8_t { fp32, fp16 };

// With these tiers. Errors: vulkan.no-kernel and its like, with the node's location. `keeps_f16`: whether any value of
// f32 is kept in 16 bits; programs of quantised values or of f16 have none.
Result<vulkan_program::Program> compile(const Graph& graph, std::span<const vulkan_program::TierId> tiers,
                                        Precision precision = Precision::fp32, bool* keeps_f16 = nullptr,
                                        const KeptWide& wide = {});

}  // namespace tosaic::shaders
