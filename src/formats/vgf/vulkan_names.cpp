// SPDX-License-Identifier: Apache-2.0
#include "formats/vgf/vulkan_names.h"

#include <array>
#include <map>
#include <span>
#include <vector>

namespace tosaic::vgf {
namespace {

using Names = std::map<std::string, std::uint32_t, std::less<>>;

void number(Names& names, std::uint32_t& next, const std::string& channels, std::span<const char* const> kinds) {
  for (const char* kind : kinds) names["VK_FORMAT_" + channels + "_" + kind] = next++;
}

// Vulkan numbers its uncompressed formats by channels, and for each in one order of kinds.
Names formats() {
  constexpr std::array normalised{"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "SRGB"};
  constexpr std::array halves{"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "SFLOAT"};
  constexpr std::array words{"UINT", "SINT", "SFLOAT"};
  Names names{{"VK_FORMAT_UNDEFINED", 0},
              {"VK_FORMAT_R8_BOOL_ARM", 1000460000},
              {"VK_FORMAT_R16_SFLOAT_FPENCODING_BFLOAT16_ARM", 1000460001},
              {"VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM", 1000460002},
              {"VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM", 1000460003}};
  std::uint32_t next = 9;
  for (const char* channels : {"R8", "R8G8", "R8G8B8", "B8G8R8", "R8G8B8A8", "B8G8R8A8"})
    number(names, next, channels, normalised);
  next = 70;
  for (const char* channels : {"R16", "R16G16", "R16G16B16", "R16G16B16A16"}) number(names, next, channels, halves);
  for (const char* bits : {"32", "64"}) {
    std::string channels;
    for (const char* channel : {"R", "G", "B", "A"})
      number(names, next, channels += std::string(channel) + bits, words);
  }
  return names;
}

Names listed(const std::string& prefix, std::span<const char* const> names) {
  Names found;
  for (std::uint32_t i = 0; i < names.size(); ++i) found[prefix + names[i]] = i;
  return found;
}

const Names& names_of(VulkanEnum kind) {
  static const std::array<Names, 5> all = [] {
    constexpr std::array descriptors{"SAMPLER",        "COMBINED_IMAGE_SAMPLER", "SAMPLED_IMAGE",
                                     "STORAGE_IMAGE",  "UNIFORM_TEXEL_BUFFER",   "STORAGE_TEXEL_BUFFER",
                                     "UNIFORM_BUFFER", "STORAGE_BUFFER"};
    constexpr std::array filters{"NEAREST", "LINEAR"};
    constexpr std::array modes{"REPEAT", "MIRRORED_REPEAT", "CLAMP_TO_EDGE", "CLAMP_TO_BORDER", "MIRROR_CLAMP_TO_EDGE"};
    constexpr std::array colours{"FLOAT_TRANSPARENT_BLACK", "INT_TRANSPARENT_BLACK", "FLOAT_OPAQUE_BLACK",
                                 "INT_OPAQUE_BLACK",        "FLOAT_OPAQUE_WHITE",    "INT_OPAQUE_WHITE"};
    std::array<Names, 5> made{formats(), listed("VK_DESCRIPTOR_TYPE_", descriptors), listed("VK_FILTER_", filters),
                              listed("VK_SAMPLER_ADDRESS_MODE_", modes), listed("VK_BORDER_COLOR_", colours)};
    made[1]["VK_DESCRIPTOR_TYPE_TENSOR_ARM"] = 1000460000;
    return made;
  }();
  return all[static_cast<std::size_t>(kind)];
}

}  // namespace

std::optional<std::uint32_t> vulkan_number(VulkanEnum kind, std::string_view name) {
  const Names& names = names_of(kind);
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

std::optional<DType> channel_type(std::uint32_t format) {
  const std::string name = vulkan_name(VulkanEnum::format, format);
  const bool real = name.ends_with("_SFLOAT");
  if (name.find("_R8") != std::string::npos || name.find("_B8") != std::string::npos) return DType::i8;
  if (name.find("_R16") != std::string::npos) return real ? DType::f16 : DType::i16;
  if (name.find("_R32") != std::string::npos) return real ? DType::f32 : DType::i32;
  return std::nullopt;
}

std::string vulkan_name(VulkanEnum kind, std::uint32_t number) {
  for (const auto& [name, value] : names_of(kind))
    if (value == number) return name;
  return "";
}

}  // namespace tosaic::vgf
