// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_features.h"

#include <algorithm>
#include <cstring>

namespace tosaic::vulkan {

namespace {

constexpr const char* matrix_extension = "VK_KHR_cooperative_matrix";
constexpr std::uint32_t side = 16, subgroup_size = 32, of_f16 = 0, of_f32 = 1, of_i8 = 3, of_i32 = 5,
                        scope_subgroup = 3;

}  // namespace

ComputeFeatureChain::ComputeFeatureChain(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> present(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, present.data());
  const auto has = [&](const char* name) {
    return std::ranges::any_of(present, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
  };
  core_.pNext = &storage_16_;
  if (has(VK_KHR_8BIT_STORAGE_EXTENSION_NAME)) {
    storage_16_.pNext = &storage_8_;
    extensions_.push_back(VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  }
  const bool knows_matrices = has(matrix_extension) && has(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  if (knows_matrices) {
    numbers_.pNext = storage_16_.pNext;
    matrices_.next = &numbers_;
    storage_16_.pNext = &matrices_;
  }
  if (has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    dots_.pNext = core_.pNext;
    core_.pNext = &dots_;
    extensions_.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  if (has(VK_EXT_HOST_QUERY_RESET_EXTENSION_NAME)) {
    queries_.pNext = core_.pNext;
    core_.pNext = &queries_;
    extensions_.push_back(VK_EXT_HOST_QUERY_RESET_EXTENSION_NAME);
  }
  vkGetPhysicalDeviceFeatures2(device, &core_);
  // Of all that the device has, only this. Accesses beyond a range do no harm with robustBufferAccess, which every
  // device has: what shaders of a payload do inside their loops is not checked.
  core_.features = {};
  core_.features.robustBufferAccess = VK_TRUE;
  found_.storage_8 = storage_8_.storageBuffer8BitAccess == VK_TRUE;
  found_.storage_16 = storage_16_.storageBuffer16BitAccess == VK_TRUE;
  found_.dots = dots_.shaderIntegerDotProduct == VK_TRUE;
  find_properties(device, has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME));
  if (has(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME)) {
    find_floats(device);
    extensions_.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
  }
  if (knows_matrices && matrices_.matrices) find_matrices(device);
  if (found_.matrices || found_.int8_matrices) {
    extensions_.push_back(matrix_extension);
    extensions_.push_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  } else if (knows_matrices) {
    storage_16_.pNext = numbers_.pNext;
  }
  numbers_.shaderFloat16 = found_.matrices;
  numbers_.shaderInt8 = found_.int8_matrices;
  matrices_.robust = VK_FALSE;

  storage_8_.uniformAndStorageBuffer8BitAccess = storage_8_.storagePushConstant8 = VK_FALSE;

  storage_16_.uniformAndStorageBuffer16BitAccess = storage_16_.storagePushConstant16 =
      storage_16_.storageInputOutput16 = VK_FALSE;
}

void ComputeFeatureChain::find_properties(VkPhysicalDevice device, bool knows_sizes) {
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  all.pNext = &subgroup;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  if (knows_sizes) subgroup.pNext = &sizes;
  VkPhysicalDeviceShaderIntegerDotProductProperties dots{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  if (found_.dots) {
    dots.pNext = subgroup.pNext;
    subgroup.pNext = &dots;
  }
  vkGetPhysicalDeviceProperties2(device, &all);
  found_.is_cpu = all.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  found_.fast_dots = dots.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
  // Where a pipeline may have others, nobody can tell.
  const bool fixed = !knows_sizes || sizes.minSubgroupSize == sizes.maxSubgroupSize;
  found_.subgroup_size = subgroup.subgroupSize;
  subgroups_are_fixed_ = fixed;
  found_.shuffles = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
}

void ComputeFeatureChain::find_floats(VkPhysicalDevice device) {
  VkPhysicalDeviceFloatControlsProperties floats{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  all.pNext = &floats;
  vkGetPhysicalDeviceProperties2(device, &all);
  floats_.special = floats.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  floats_.denormals = floats.shaderDenormPreserveFloat32 == VK_TRUE &&
                      floats.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
}

// In subgroups that always have 32 invocations: of f16, 16 deep, and of 8-bit integers, 32 deep, with sums of 16 x
// 16 in 32 bits.
void ComputeFeatureChain::find_matrices(VkPhysicalDevice device) {
  using List = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, MatrixProperties*);
  const auto list = reinterpret_cast<List>(
      vkGetInstanceProcAddr(volkGetLoadedInstance(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  std::uint32_t count = 0;
  if (!list || !subgroups_are_fixed_ || found_.subgroup_size != subgroup_size ||
      list(device, &count, nullptr) != VK_SUCCESS)
    return;
  std::vector<MatrixProperties> all(count);
  if (list(device, &count, all.data()) != VK_SUCCESS) return;
  const auto has = [&](std::uint32_t depth, std::uint32_t factor, std::uint32_t sum) {
    return std::ranges::any_of(all, [&](const MatrixProperties& m) {
      return m.rows == side && m.columns == side && m.depth == depth && m.left == factor && m.right == factor &&
             m.sum == sum && m.result == sum && m.saturates == VK_FALSE && m.scope == scope_subgroup;
    });
  };
  found_.matrices = numbers_.shaderFloat16 && has(side, of_f16, of_f32);
  found_.int8_matrices = numbers_.shaderInt8 && has(2 * side, of_i8, of_i32);
}

}  // namespace tosaic::vulkan
