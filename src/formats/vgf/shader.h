// SPDX-License-Identifier: Apache-2.0
// A custom operator that is a Vulkan compute shader: TOSA's CUSTOM of the domain below, whose attributes are JSON, and
// a compute segment of a VGF file. Used by the writer, which makes the one of the other, and by the reader.
//
//   {"entry_point": "main", "workgroup_sizes": [4, 4, 1], "shader_language": "SPIR-V", "shader_code": "<base64>",
//    "input_0_binding": 0, "input_0_descriptorset": 0, "input_0_vkformat": "VK_FORMAT_R32_SFLOAT",
//    "input_0_vkdescriptortype": "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER", "input_0_type": "Tensor", ...,
//    "output_0_binding": 1}
#pragma once
#include "formats/vgf/vgf.h"

namespace tosaic::vgf {

inline constexpr std::string_view shader_domain = "com.arm.VulkanCustomShader";

struct ShaderOperand {
  std::uint32_t binding = 0, set = 0;
  std::uint32_t format = 0;  // 0: that of the tensor
  std::uint32_t descriptor_type = tensor_descriptor;
  std::vector<Sampler> sampler;  // none or one
};

struct Shader {
  std::string entry_point;
  Language language = Language::absent;  // absent: the host puts the shader in
  Bytes code;
  std::vector<std::uint32_t> dispatch;  // work groups: three
  std::vector<ShaderOperand> inputs, outputs;
};

// Errors: vgf.shader (not JSON; a member that is missing, of another type, or names what Vulkan does not have).
Result<Shader> parse_shader(std::string_view json, std::size_t inputs, std::size_t outputs);
std::string shader_json(const Shader& shader);

}  // namespace tosaic::vgf
