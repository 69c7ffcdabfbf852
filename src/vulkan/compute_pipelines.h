// SPDX-License-Identifier: Apache-2.0
// The pipelines of a program's modules, and their descriptors' layouts.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "formats/spirv/compute/check_shader.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "vulkan/device.h"
#include "vulkan/undo.h"

namespace tosaic::vulkan {

struct Pipeline {
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::uint32_t bindings = 0;
};

class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // The modules once more, and what they and the dispatches ask of the device. Errors: vulkan.feature, vulkan.limit.
  Status check(const vulkan_program::Tier& tier);
  // Of the tier that was checked last, on as many threads as there are cores, and next to it what has to be done as
  // well. Errors: vulkan.failed, vulkan.memory.
  Status make(const vulkan_program::Tier& tier, const std::vector<std::function<void()>>& others = {});
  const Pipeline& operator[](std::size_t module) const { return made_[module]; }

 private:
  static VkDescriptorType descriptor_type(const spirv::ShaderBinding& binding);
  Status make_layout(Pipeline& made, const spirv::ShaderInterface& interface);
  Status make_pipeline(Pipeline& made, const Bytes& code) const;
  std::vector<std::size_t> by_length(const vulkan_program::Tier& tier) const;

  std::shared_ptr<Device> device_;
  std::vector<spirv::ShaderInterface> interfaces_;
  std::vector<Pipeline> made_;  // by module
  Undo undo_;
};

}  // namespace tosaic::vulkan
