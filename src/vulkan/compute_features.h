// SPDX-License-Identifier: Apache-2.0
// What a device is asked to switch on for compute shaders: what it has of what ours may use.
#pragma once
#include <volk.h>

#include <vector>

#include "formats/vulkan_program/tiers.h"

namespace tosaic::vulkan {

class ComputeFeatureChain {
 public:
  explicit ComputeFeatureChain(VkPhysicalDevice device);
  ComputeFeatureChain(const ComputeFeatureChain&) = delete;
  ComputeFeatureChain& operator=(const ComputeFeatureChain&) = delete;
  const vulkan_program::DeviceTraits& found() const { return found_; }
  const void* head() const { return &core_; }  // for VkDeviceCreateInfo::pNext
  const std::vector<const char*>& extensions() const { return extensions_; }

 private:
  void find_properties(VkPhysicalDevice device);

  VkPhysicalDeviceFeatures2 core_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDevice16BitStorageFeatures storage_16_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage_8_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  vulkan_program::DeviceTraits found_;
  std::vector<const char*> extensions_;
};

}  // namespace tosaic::vulkan
