// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>

#include "base/system/thread_pool.h"
#include "formats/vulkan_program/module_checks.h"
#include "vulkan/call.h"

namespace tosaic::vulkan {

Status Pipelines::check(const vulkan_program::Tier& tier) {
  interfaces_.clear();
  for (Result<spirv::ShaderInterface>& checked : vulkan_program::check_modules(tier.modules)) {
    TOSAIC_TRY(spirv::ShaderInterface interface, std::move(checked));
    interfaces_.push_back(std::move(interface));
  }
  const VkPhysicalDeviceLimits& limits = device_->limits();
  const auto lacks = [&](const char* what, const char* who) {
    return error("vulkan.feature",
                 fmt::format("{} has no {} storage buffers, which {} need", device_->description(), what, who));
  };
  for (const spirv::ShaderInterface& i : interfaces_) {
    if (i.shuffles && !device_->traits().shuffles)
      return error("vulkan.feature", fmt::format("{} has no shuffles in subgroups", device_->description()));
    if (i.matrices && !device_->traits().matrices)
      return error("vulkan.feature", fmt::format("{} has no matrices of f16", device_->description()));
    if (i.int8_matrices && !device_->traits().int8_matrices)
      return error("vulkan.feature", fmt::format("{} has no matrices of 8-bit integers", device_->description()));
    if (i.dots && !device_->traits().dots)
      return error("vulkan.feature", fmt::format("{} has no dot products of 8-bit integers", device_->description()));
    for (const spirv::ShaderBinding& b : i.bindings) {
      if (b.element_bits == 8 && !device_->traits().storage_8) return lacks("8-bit", "i8 and bool tensors");
      if (b.element_bits == 16 && !device_->traits().storage_16) return lacks("16-bit", "i16 and f16 tensors");
    }
  }
  const auto beyond = [&](const vulkan_program::Dispatch& d, const char* what, std::uint64_t wanted,
                          std::uint64_t most) {
    return error("vulkan.limit", fmt::format("'{}' ({}) has {} {}, {} takes {}", d.value, d.kernel, wanted, what,
                                             device_->description(), most));
  };
  for (const vulkan_program::Dispatch& d : tier.dispatches) {
    const std::uint64_t buffers =
        std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
    if (d.ranges.size() > buffers) return beyond(d, "buffers", d.ranges.size(), buffers);
    std::uint64_t views = 0;
    for (const vulkan_program::Range& r : d.ranges) {
      const bool is_view = r.view != vulkan_program::View::buffer;
      views += is_view;
      if (const std::uint64_t texels = r.bytes / texel_bytes(r.view); is_view && texels > limits.maxTexelBufferElements)
        return beyond(d, "texels in one buffer", texels, limits.maxTexelBufferElements);
      if (!is_view && r.bytes > limits.maxStorageBufferRange)
        return beyond(d, "bytes in one buffer", r.bytes, limits.maxStorageBufferRange);
      if (is_view && vulkan_program::alignment % limits.minTexelBufferOffsetAlignment != 0)
        return beyond(d, "bytes between beginnings of texel buffers", vulkan_program::alignment,
                      limits.minTexelBufferOffsetAlignment);
    }
    const std::uint64_t most_views =
        std::min(limits.maxPerStageDescriptorSampledImages, limits.maxDescriptorSetSampledImages);
    if (views > most_views) return beyond(d, "texel buffers", views, most_views);
    for (std::size_t i = 0; i < 3; ++i)
      if (d.groups[i] > limits.maxComputeWorkGroupCount[i])
        return beyond(d, "groups along an axis", d.groups[i], limits.maxComputeWorkGroupCount[i]);
    const std::uint64_t size = interfaces_[d.module].group_size,
                        most = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
    if (size > most) return beyond(d, "invocations in a group", size, most);
    const std::uint64_t shared = interfaces_[d.module].shared_bytes;
    if (shared > limits.maxComputeSharedMemorySize)
      return beyond(d, "bytes that a group shares", shared, limits.maxComputeSharedMemorySize);
    if (4 * d.pushes.size() > limits.maxPushConstantsSize)
      return beyond(d, "bytes of push constants", 4 * d.pushes.size(), limits.maxPushConstantsSize);
  }
  return {};
}

VkDescriptorType Pipelines::descriptor_type(const spirv::ShaderBinding& binding) {
  return binding.kind == spirv::ShaderBinding::Kind::buffer ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                            : VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
}

Status Pipelines::make_layout(Pipeline& made, const spirv::ShaderInterface& interface) {
  const auto& vk = device_->vk;
  made.bindings = static_cast<std::uint32_t>(interface.bindings.size());
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (std::uint32_t b = 0; b < made.bindings; ++b)
    bindings.push_back({b, descriptor_type(interface.bindings[b]), 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = made.bindings;
  set.pBindings = bindings.data();
  TOSAIC_CHECK(called("vkCreateDescriptorSetLayout", [&] {
    return vk.vkCreateDescriptorSetLayout(device_->handle, &set, nullptr, &made.set_layout);
  }));
  undo_.later([this, &made] { device_->vk.vkDestroyDescriptorSetLayout(device_->handle, made.set_layout, nullptr); });
  const VkPushConstantRange pushes{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * vulkan_program::most_pushes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &made.set_layout;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &pushes;
  TOSAIC_CHECK(called("vkCreatePipelineLayout",
                      [&] { return vk.vkCreatePipelineLayout(device_->handle, &info, nullptr, &made.layout); }));
  undo_.later([this, &made] { device_->vk.vkDestroyPipelineLayout(device_->handle, made.layout, nullptr); });
  return {};
}

Status Pipelines::make_pipeline(Pipeline& made, const Bytes& code) const {
  const auto& vk = device_->vk;
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  const std::vector<spirv::Word> words = spirv::with_float_controls(code.as<spirv::Word>(), device_->info().floats);
  module_info.codeSize = words.size() * sizeof(spirv::Word);
  module_info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkCreateShaderModule",
                      [&] { return vk.vkCreateShaderModule(device_->handle, &module_info, nullptr, &module); }));
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = made.layout;
  Status status = called("vkCreateComputePipelines", [&] {
    return vk.vkCreateComputePipelines(device_->handle, device_->pipeline_cache, 1, &info, nullptr, &made.pipeline);
  });
  vk.vkDestroyShaderModule(device_->handle, module, nullptr);
  return status;
}

// The longest first, so that no thread begins with one of them when the others are done.
std::vector<std::size_t> Pipelines::by_length(const vulkan_program::Tier& tier) const {
  std::vector<std::size_t> order(tier.modules.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t m) {
    constexpr std::size_t of_matrices = 4;  // drivers compile these for longer
    return tier.modules[m].size() * (interfaces_[m].matrices || interfaces_[m].int8_matrices ? of_matrices : 1);
  });
  return order;
}

Status Pipelines::make(const vulkan_program::Tier& tier, const std::vector<std::function<void()>>& others) {
  made_.resize(tier.modules.size());
  undo_.later([this] {
    for (const Pipeline& p : made_) device_->vk.vkDestroyPipeline(device_->handle, p.pipeline, nullptr);
  });
  for (std::size_t m = 0; m < made_.size(); ++m) TOSAIC_CHECK(make_layout(made_[m], interfaces_[m]));

  const std::vector<std::size_t> order = by_length(tier);
  std::mutex guard;
  Status failed;
  const auto make_one = [&](std::size_t m) {
    if (Status status = make_pipeline(made_[m], tier.modules[m]); !status.ok()) {
      const std::lock_guard lock(guard);
      failed = std::move(status);
    }
  };
  // One of these and one of those, from the first ones on.
  std::atomic<std::size_t> next = 0;
  const std::size_t both = 2 * std::min(order.size(), others.size()), all = order.size() + others.size();
  const bool more_others = others.size() > order.size();
  ThreadPool& pool = ThreadPool::shared();
  pool.run(pool.threads(), [&](std::int64_t, int) {
    for (std::size_t n = next++; n < all; n = next++) {
      const bool other = n < both ? n % 2 == 1 : more_others;
      const std::size_t i = n < both ? n / 2 : n - both / 2;
      if (other)
        others[i]();
      else
        make_one(order[i]);
    }
  });
  return failed;
}

}  // namespace tosaic::vulkan
