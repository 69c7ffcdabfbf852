// SPDX-License-Identifier: Apache-2.0
// The Vulkan devices of this machine, as the public API tells of them.
#include <algorithm>

#include "api/guard.h"
#include "tosaic/session.hpp"
#include "vulkan/device.h"

namespace tosaic {
namespace {

const char* kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return "cpu";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return "virtual";
    default: return "other";
  }
}

}  // namespace

Result<std::vector<VulkanDevice>> vulkan_devices() {
  return guarded("the Vulkan devices", []() -> Result<std::vector<VulkanDevice>> {
    TOSAIC_TRY(const auto found, vulkan::Device::list());
    std::vector<VulkanDevice> devices;
    const std::vector<std::string_view> names = vulkan_program::tier_names();
    for (const vulkan::DeviceInfo& d : found) {
      const bool computes = d.computes && d.version >= vulkan::least_version(vulkan::Use::compute);
      VulkanDevice device{
          d.index, d.name, kind_of(d.type), vulkan::version_text(d.version), computes, d.runs_data_graphs, {}};
      if (computes)
        for (std::size_t i : vulkan_program::tiers_for(d.traits, names)) device.tiers.emplace_back(names[i]);
      if (computes)
        for (const vulkan_program::TierRow& row : vulkan_program::tier_rows())
          if (const std::string_view lacks = row.lacking(d.traits); !lacks.empty())
            device.other_tiers.emplace_back(row.name, lacks);
      device.driver = d.driver_name;
      device.driver_version = d.driver_version;
      device.storage_8 = d.traits.storage_8;
      device.storage_16 = d.traits.storage_16;
      device.memory_bytes = d.memory_bytes;
      device.range_bytes = d.limits.maxStorageBufferRange;
      device.texels = d.limits.maxTexelBufferElements;
      device.shared_bytes = d.limits.maxComputeSharedMemorySize;
      device.push_constant_bytes = d.limits.maxPushConstantsSize;
      device.group_invocations = d.limits.maxComputeWorkGroupInvocations;
      std::ranges::copy(d.limits.maxComputeWorkGroupSize, device.group_size);
      devices.push_back(std::move(device));
    }
    return devices;
  });
}

}  // namespace tosaic
