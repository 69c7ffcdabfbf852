// SPDX-License-Identifier: Apache-2.0
// A buffer with memory of its own.
#pragma once
#include <memory>
#include <span>

#include "vulkan/device.h"

namespace tosaic::vulkan {

enum class Placement : std::uint8_t {
  device,   // fast for the device
  shared,   // the same, and written by the host where there is such memory
  upload,   // written by the host, read by the device
  readback  // written by the device, read by the host
};

class DeviceBuffer {
 public:
  // At least one byte. Errors: vulkan.memory, vulkan.failed. `shared`: where what the host sees too is full (256 MiB on
  // many GPUs), the device's other memory is taken.
  static Result<std::unique_ptr<DeviceBuffer>> make(std::shared_ptr<Device> device, VkDeviceSize bytes,
                                                    Placement placement);
  explicit DeviceBuffer(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  VkBuffer handle() const { return handle_; }
  VkDeviceSize bytes() const { return bytes_; }
  std::byte* mapped() const { return memory_->mapped(); }  // null: the host does not see it
  bool cached() const { return cached_; }                  // the host reads it fast

 private:
  Status allocate(const VkMemoryRequirements& needs, std::uint32_t type, bool mapped);

  std::shared_ptr<Device> device_;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VkDeviceSize bytes_ = 0;
  std::shared_ptr<Memory> memory_;
  bool cached_ = false;
};

}  // namespace tosaic::vulkan
