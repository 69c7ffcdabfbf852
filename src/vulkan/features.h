// SPDX-License-Identifier: Apache-2.0
// What a device is asked to switch on: all that graphs and their shaders may use, where the device has it.
#pragma once
#include <vector>

#include "base/result.h"
#include "vulkan/ml_extensions.h"

namespace tosaic::vulkan {

class Features {
 public:
  explicit Features(VkPhysicalDevice device);
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;
  // Errors: vulkan.feature, with what is missing.
  Status check() const;
  const VkPhysicalDeviceFeatures2& chain() const { return core_; }  // for VkDeviceCreateInfo::pNext
  const std::vector<const char*>& extensions() const { return extensions_; }
  bool buffer_addresses() const { return v12_.bufferDeviceAddress; }

 private:
  // VK_KHR_shader_bfloat16, VK_EXT_shader_float8 and VK_EXT_shader_replicated_composites have structures of this form.
  struct Optional {
    VkStructureType sType;
    void* pNext;
    VkBool32 wanted, unused[3];
  };

  VkPhysicalDeviceFeatures2 core_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features v11_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features v12_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features v13_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceTensorFeaturesARM tensors_{stype::tensor_features};
  VkPhysicalDeviceDataGraphFeaturesARM graphs_{stype::graph_features};
  Optional bfloat16_{stype::bfloat16_features}, float8_{stype::float8_features},
      replicated_{stype::replicated_features};
  std::vector<const char*> extensions_{"VK_ARM_tensors", "VK_ARM_data_graph"};
};

}  // namespace tosaic::vulkan
