// SPDX-License-Identifier: Apache-2.0
// What a device is asked to switch on for compute shaders: what it has of what ours may use.
#pragma once
#include <volk.h>

#include <vector>

#include "formats/spirv/compute/float_controls.h"
#include "formats/vulkan_program/tiers.h"

namespace tosaic::vulkan {

// VK_KHR_cooperative_matrix, which headers of 2022 do not have yet.
struct MatrixFeatures {
  std::uint32_t type = 1000506000;
  void* next = nullptr;
  VkBool32 matrices = VK_FALSE, robust = VK_FALSE;
};
struct MatrixProperties {
  std::uint32_t type = 1000506001;
  void* next = nullptr;
  std::uint32_t rows = 0, columns = 0, depth = 0;
  std::uint32_t left = 0, right = 0, sum = 0, result = 0;  // numbers: 0: f16, 1: f32, 3: i8, 5: i32
  VkBool32 saturates = VK_FALSE;
  std::uint32_t scope = 0;
};

class ComputeFeatureChain {
 public:
  explicit ComputeFeatureChain(VkPhysicalDevice device);
  ComputeFeatureChain(const ComputeFeatureChain&) = delete;
  ComputeFeatureChain& operator=(const ComputeFeatureChain&) = delete;
  const vulkan_program::DeviceTraits& found() const { return found_; }
  const spirv::FloatControls& floats() const { return floats_; }  // that modules may ask for
  const void* head() const { return &core_; }                     // for VkDeviceCreateInfo::pNext
  const std::vector<const char*>& extensions() const { return extensions_; }
  bool host_resets_queries() const { return queries_.hostQueryReset == VK_TRUE; }

 private:
  void find_properties(VkPhysicalDevice device, bool knows_sizes);
  void find_floats(VkPhysicalDevice device);
  void find_matrices(VkPhysicalDevice device);

  VkPhysicalDeviceFeatures2 core_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDevice16BitStorageFeatures storage_16_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage_8_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  VkPhysicalDeviceShaderFloat16Int8Features numbers_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  MatrixFeatures matrices_;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots_{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceHostQueryResetFeatures queries_{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES};
  vulkan_program::DeviceTraits found_;
  spirv::FloatControls floats_;
  bool subgroups_are_fixed_ = false;
  std::vector<const char*> extensions_;
};

}  // namespace tosaic::vulkan
