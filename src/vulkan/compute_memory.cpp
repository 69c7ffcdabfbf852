// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_memory.h"

#include <algorithm>

#include "vulkan/call.h"

namespace tosaic::vulkan {
namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                host_cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

std::optional<std::uint32_t> type_for(const Device& device, std::uint32_t bits, Placement placement) {
  switch (placement) {
    case Placement::device: return device.memory_type(bits, 0, local);
    case Placement::shared: {
      const auto both = device.memory_type(bits, local | host, host_cached);
      return both ? both : device.memory_type(bits, 0, local);
    }
    case Placement::upload: return device.memory_type(bits, host, 0);
    case Placement::readback: return device.memory_type(bits, host, host_cached);
  }
  return std::nullopt;
}

}  // namespace

Status DeviceBuffer::allocate(const VkMemoryRequirements& needs, std::uint32_t type, bool mapped) {
  const VkMemoryPropertyFlags flags = device_->memory_flags(type);
  const bool visible = mapped && (flags & host) == host;
  cached_ = visible && (flags & host_cached);
  TOSAIC_TRY(memory_, device_->allocate(needs.size, type, visible));
  return {};
}

DeviceBuffer::~DeviceBuffer() { device_->vk.vkDestroyBuffer(device_->handle, handle_, nullptr); }

Result<std::unique_ptr<DeviceBuffer>> DeviceBuffer::make(std::shared_ptr<Device> device, VkDeviceSize bytes,
                                                         Placement placement) {
  auto made = std::make_unique<DeviceBuffer>(device);
  made->bytes_ = std::max<VkDeviceSize>(bytes, 4);
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = made->bytes_;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const auto& vk = device->vk;
  TOSAIC_CHECK(
      called("vkCreateBuffer", [&] { return vk.vkCreateBuffer(device->handle, &info, nullptr, &made->handle_); }));
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device->handle, made->handle_, &needs);
  const auto type = type_for(*device, needs.memoryTypeBits, placement);
  if (!type) return error("vulkan.memory", "the device has no memory of a type that buffers take");
  Status allocated = made->allocate(needs, *type, placement != Placement::device);
  const auto other = type_for(*device, needs.memoryTypeBits, Placement::device);
  if (placement == Placement::shared && !allocated.ok() && other != type && allocated.error().code == "vulkan.memory")
    allocated = made->allocate(needs, *other, false);
  TOSAIC_CHECK(std::move(allocated));
  TOSAIC_CHECK(called("vkBindBufferMemory", [&] {
    return vk.vkBindBufferMemory(device->handle, made->handle_, made->memory_->handle(), 0);
  }));
  return made;
}

}  // namespace tosaic::vulkan
