// SPDX-License-Identifier: Apache-2.0
// What a device is asked to switch on for compute shaders: what it has of what ours may use.
#pragma once
#include <volk.h>

#include <vector>

namespace tosaic::vulkan {

struct ComputeFeatures {
  bool storage_8 = false, storage_16 = false;  // buffers of 8-bit and of 16-bit elements
};

class ComputeFeatureChain {
 public:
  explicit ComputeFeatureChain(VkPhysicalDevice device);
  ComputeFeatureChain(const ComputeFeatureChain&) = delete;
  ComputeFeatureChain& operator=(const ComputeFeatureChain&) = delete;
  const ComputeFeatures& found() const { return found_; }
  const void* head() const { return &core_; }  // for VkDeviceCreateInfo::pNext
  const std::vector<const char*>& extensions() const { return extensions_; }

 private:
  VkPhysicalDeviceFeatures2 core_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDevice16BitStorageFeatures storage_16_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage_8_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  ComputeFeatures found_;
  std::vector<const char*> extensions_;
};

}  // namespace tosaic::vulkan
