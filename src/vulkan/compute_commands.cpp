// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_commands.h"

#include <algorithm>
#include <array>
#include <bit>

#include "vulkan/call.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::View;

// Every device takes these formats for uniform texel buffers.
VkFormat format_of(View view) {
  switch (view) {
    case View::buffer: break;
    case View::r8_uint: return VK_FORMAT_R8_UINT;
    case View::r16_uint: return VK_FORMAT_R16_UINT;
    case View::r32_uint: return VK_FORMAT_R32_UINT;
    case View::rgba32_uint: return VK_FORMAT_R32G32B32A32_UINT;
    case View::r32_float: return VK_FORMAT_R32_SFLOAT;
    case View::rgba32_float: return VK_FORMAT_R32G32B32A32_SFLOAT;
  }
  return VK_FORMAT_UNDEFINED;
}

// Lavapipe compiles a shader once for each way in which it sees its views, for all of which it makes the same code: it
// takes the second byte of a texel buffer's size for an image's last level, and asks whether there is more than one,
// and whether the whole buffer has a power of two of bytes. (lp_sampler_static_texture_state in Mesa, 22.3 at least.)
// All but the first of a module's are then looked up under other names in its disk cache than they were stored under,
// and compiled in the second process, too. So all views are made alike.
constexpr VkDeviceSize step = 256;
VkDeviceSize seen_bytes(const BoundRange& range) {
  const bool unlike = range.bytes / step % 256 == 0;
  return range.bytes + (unlike && range.behind >= step ? step : 0);
}

}  // namespace

BoundRange bound_range(const DeviceBuffer& buffer, VkDeviceSize offset, const vulkan_program::Range& range) {
  return {buffer.handle(), offset, range.bytes, range.view};
}

VkDeviceSize with_room_for_views(VkDeviceSize bytes) {
  bytes += step;
  return std::has_single_bit(bytes) ? bytes + step : bytes;
}

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
  TOSAIC_CHECK(allocate(all));
  undo_.later([this] {
    for (const auto& [range, view] : views_) device_->vk.vkDestroyBufferView(device_->handle, view, nullptr);
  });
  for (std::size_t i = 0; i < all.size(); ++i) TOSAIC_CHECK(write(sets_[i], all[i]));
  return {};
}

Status DescriptorSets::allocate(const std::vector<Bindings>& all) {
  const auto& vk = device_->vk;
  std::uint32_t buffers = 0, texel_buffers = 0;
  std::vector<VkDescriptorSetLayout> layouts;
  for (const Bindings& b : all) {
    for (const BoundRange& r : b.ranges) ++(r.view == View::buffer ? buffers : texel_buffers);
    layouts.push_back(b.layout);
  }
  std::vector<VkDescriptorPoolSize> sizes{{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(buffers, 1u)}};
  if (texel_buffers) sizes.push_back({VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, texel_buffers});
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = static_cast<std::uint32_t>(all.size());
  info.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  VkDescriptorPool pool = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkCreateDescriptorPool",
                      [&] { return vk.vkCreateDescriptorPool(device_->handle, &info, nullptr, &pool); }));
  undo_.later([this, pool] { device_->vk.vkDestroyDescriptorPool(device_->handle, pool, nullptr); });
  VkDescriptorSetAllocateInfo wanted{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  wanted.descriptorPool = pool;
  wanted.descriptorSetCount = info.maxSets;
  wanted.pSetLayouts = layouts.data();
  sets_.resize(all.size());
  return called("vkAllocateDescriptorSets",
                [&] { return vk.vkAllocateDescriptorSets(device_->handle, &wanted, sets_.data()); });
}

Result<VkBufferView> DescriptorSets::view_of(const BoundRange& range) {
  VkBufferView& view = views_[range];
  if (view) return view;
  VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = range.buffer;
  info.format = format_of(range.view);
  info.offset = range.offset;
  info.range = seen_bytes(range);
  TOSAIC_CHECK(called("vkCreateBufferView",
                      [&] { return device_->vk.vkCreateBufferView(device_->handle, &info, nullptr, &view); }));
  return view;
}

Status DescriptorSets::write(VkDescriptorSet set, const Bindings& bindings) {
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set;
  write.descriptorCount = 1;
  for (std::uint32_t b = 0; b < bindings.ranges.size(); ++b) {
    const BoundRange& range = bindings.ranges[b];
    const VkDescriptorBufferInfo info{range.buffer, range.offset, range.bytes};
    VkBufferView view = VK_NULL_HANDLE;
    if (range.view != View::buffer) { TOSAIC_TRY(view, view_of(range)); }
    write.dstBinding = b;
    write.descriptorType = view ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = view ? nullptr : &info;
    write.pTexelBufferView = view ? &view : nullptr;
    device_->vk.vkUpdateDescriptorSets(device_->handle, 1, &write, 0, nullptr);
  }
  return {};
}

}  // namespace tosaic::vulkan
