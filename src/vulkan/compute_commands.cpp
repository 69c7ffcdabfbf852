// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_commands.h"

#include <algorithm>
#include <array>

#include "vulkan/call.h"

namespace tosaic::vulkan {

Status Commands::make() {
  const auto& vk = device->vk;
  VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  info.queueFamilyIndex = device->queue_family;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  TOSAIC_CHECK(
      called("vkCreateCommandPool", [&] { return vk.vkCreateCommandPool(device->handle, &info, nullptr, &pool); }));
  undo.later([this] { device->vk.vkDestroyCommandPool(device->handle, pool, nullptr); });
  VkCommandBufferAllocateInfo buffer{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  buffer.commandPool = pool;
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  TOSAIC_CHECK(called("vkAllocateCommandBuffers",
                      [&] { return vk.vkAllocateCommandBuffers(device->handle, &buffer, &handle); }));
  VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  TOSAIC_CHECK(called("vkCreateFence", [&] { return vk.vkCreateFence(device->handle, &fence_info, nullptr, &fence); }));
  undo.later([this] { device->vk.vkDestroyFence(device->handle, fence, nullptr); });
  return {};
}

Status Commands::begin() const {
  const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  return called("vkBeginCommandBuffer", [&] { return device->vk.vkBeginCommandBuffer(handle, &info); });
}
Status Commands::end() const {
  return called("vkEndCommandBuffer", [&] { return device->vk.vkEndCommandBuffer(handle); });
}

void Commands::barrier(Access before, Access after) const {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = before.kind;
  memory.dstAccessMask = after.kind;
  device->vk.vkCmdPipelineBarrier(handle, before.stage, after.stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
}
void Commands::copy(VkBuffer from, VkBuffer to, const VkBufferCopy& what) const {
  device->vk.vkCmdCopyBuffer(handle, from, to, 1, &what);
}

void Commands::dispatch(const Pipeline& p, VkDescriptorSet set, const vulkan_program::Dispatch& d) const {
  const auto& vk = device->vk;
  vk.vkCmdBindPipeline(handle, VK_PIPELINE_BIND_POINT_COMPUTE, p.pipeline);
  vk.vkCmdBindDescriptorSets(handle, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &set, 0, nullptr);
  // All of them: what a shader reads of push constants is defined.
  std::array<std::uint32_t, vulkan_program::most_pushes> pushes{};
  std::ranges::copy(d.pushes, pushes.begin());
  vk.vkCmdPushConstants(handle, p.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(pushes), pushes.data());
  vk.vkCmdDispatch(handle, d.groups[0], d.groups[1], d.groups[2]);
}

Status DescriptorSets::make(const std::vector<Bindings>& all) {
  if (all.empty()) return {};
  const auto& vk = device_->vk;
  std::uint32_t buffers = 0;
  std::vector<VkDescriptorSetLayout> layouts;
  for (const Bindings& b : all) {
    buffers += static_cast<std::uint32_t>(b.buffers.size());
    layouts.push_back(b.layout);
  }
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(buffers, 1u)};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = static_cast<std::uint32_t>(all.size());
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkCreateDescriptorPool",
                      [&] { return vk.vkCreateDescriptorPool(device_->handle, &info, nullptr, &pool); }));
  undo_.later([this, pool] { device_->vk.vkDestroyDescriptorPool(device_->handle, pool, nullptr); });
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocate.descriptorPool = pool;
  allocate.descriptorSetCount = info.maxSets;
  allocate.pSetLayouts = layouts.data();
  sets_.resize(all.size());
  TOSAIC_CHECK(called("vkAllocateDescriptorSets",
                      [&] { return vk.vkAllocateDescriptorSets(device_->handle, &allocate, sets_.data()); }));
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.descriptorCount = 1;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::uint32_t b = 0; b < all[i].buffers.size(); ++b) {
      write.dstSet = sets_[i];
      write.dstBinding = b;
      write.pBufferInfo = &all[i].buffers[b];
      vk.vkUpdateDescriptorSets(device_->handle, 1, &write, 0, nullptr);
    }
  return {};
}

}  // namespace tosaic::vulkan
