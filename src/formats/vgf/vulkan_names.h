// SPDX-License-Identifier: Apache-2.0
// Vulkan's enumerators by name, as far as the payload of a custom shader names them: formats, descriptor types,
// samplers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace tosaic::vgf {

enum class VulkanEnum : std::uint8_t { format, descriptor_type, filter, address_mode, border_color };

// "VK_FORMAT_R32_SFLOAT" -> 100. nullopt: Vulkan has no such name, or it is not of those.
std::optional<std::uint32_t> vulkan_number(VulkanEnum kind, std::string_view name);
std::string vulkan_name(VulkanEnum kind, std::uint32_t number);  // empty: none of those

// What one channel of a format of several, or of a scaled one, is stored as: "VK_FORMAT_R8G8B8A8_SNORM" -> i8.
std::optional<DType> channel_type(std::uint32_t format);

}  // namespace tosaic::vgf
