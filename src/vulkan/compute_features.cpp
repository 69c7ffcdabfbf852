// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_features.h"

#include <algorithm>
#include <cstring>

namespace tosaic::vulkan {

ComputeFeatureChain::ComputeFeatureChain(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> present(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, present.data());
  const bool has_8 = std::ranges::any_of(
      present, [](const auto& e) { return std::strcmp(e.extensionName, VK_KHR_8BIT_STORAGE_EXTENSION_NAME) == 0; });
  core_.pNext = &storage_16_;
  if (has_8) {
    storage_16_.pNext = &storage_8_;
    extensions_.push_back(VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  }
  vkGetPhysicalDeviceFeatures2(device, &core_);
  // Of all that the device has, only this. Accesses beyond a range do no harm with robustBufferAccess, which every
  // device has: what shaders of a payload do inside their loops is not checked.
  core_.features = {};
  core_.features.robustBufferAccess = VK_TRUE;
  found_.storage_8 = storage_8_.storageBuffer8BitAccess == VK_TRUE;
  found_.storage_16 = storage_16_.storageBuffer16BitAccess == VK_TRUE;
  find_properties(device);

  storage_8_.uniformAndStorageBuffer8BitAccess = storage_8_.storagePushConstant8 = VK_FALSE;

  storage_16_.uniformAndStorageBuffer16BitAccess = storage_16_.storagePushConstant16 =
      storage_16_.storageInputOutput16 = VK_FALSE;
}

void ComputeFeatureChain::find_properties(VkPhysicalDevice device) {
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  all.pNext = &subgroup;
  vkGetPhysicalDeviceProperties2(device, &all);
  found_.is_cpu = all.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  found_.subgroup_size = subgroup.subgroupSize;
  found_.shuffles = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
}

}  // namespace tosaic::vulkan
