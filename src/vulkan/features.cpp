// SPDX-License-Identifier: Apache-2.0
#include "vulkan/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tosaic::vulkan {

Features::Features(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> present(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, present.data());
  const auto has = [&](const char* name) {
    return std::ranges::any_of(present, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
  };
  core_.pNext = &v11_;
  v11_.pNext = &v12_;
  v12_.pNext = &v13_;
  v13_.pNext = &tensors_;
  tensors_.pNext = &graphs_;
  void** last = &graphs_.pNext;
  const auto append = [&](const char* extension, Optional& features) {
    if (!has(extension)) return;
    extensions_.push_back(extension);
    *last = &features;
    last = &features.pNext;
  };
  append("VK_KHR_shader_bfloat16", bfloat16_);
  append("VK_EXT_shader_float8", float8_);
  append("VK_EXT_shader_replicated_composites", replicated_);
  if (has("VK_ARM_data_graph_instruction_set_tosa")) extensions_.push_back("VK_ARM_data_graph_instruction_set_tosa");
  vkGetPhysicalDeviceFeatures2(device, &core_);

  // Of all that the device has, only this.
  const VkPhysicalDeviceFeatures core = core_.features;
  core_.features = {};
  core_.features.shaderInt16 = core.shaderInt16;
  core_.features.shaderInt64 = core.shaderInt64;
  core_.features.shaderFloat64 = core.shaderFloat64;
  const auto keep = [](auto& structure, auto... members) {
    auto kept = structure;
    std::memset(&kept, 0, sizeof(kept));
    kept.sType = structure.sType;
    kept.pNext = structure.pNext;
    ((kept.*members = structure.*members), ...);
    structure = kept;
  };
  keep(v11_, &VkPhysicalDeviceVulkan11Features::storageBuffer16BitAccess,
       &VkPhysicalDeviceVulkan11Features::uniformAndStorageBuffer16BitAccess);
  keep(v12_, &VkPhysicalDeviceVulkan12Features::storageBuffer8BitAccess,
       &VkPhysicalDeviceVulkan12Features::uniformAndStorageBuffer8BitAccess,
       &VkPhysicalDeviceVulkan12Features::shaderInt8, &VkPhysicalDeviceVulkan12Features::shaderFloat16,
       &VkPhysicalDeviceVulkan12Features::vulkanMemoryModel, &VkPhysicalDeviceVulkan12Features::bufferDeviceAddress,
       &VkPhysicalDeviceVulkan12Features::hostQueryReset);
  keep(v13_, &VkPhysicalDeviceVulkan13Features::synchronization2, &VkPhysicalDeviceVulkan13Features::maintenance4);
  keep(tensors_, &VkPhysicalDeviceTensorFeaturesARM::tensors, &VkPhysicalDeviceTensorFeaturesARM::shaderTensorAccess,
       &VkPhysicalDeviceTensorFeaturesARM::tensorNonPacked);
  keep(graphs_, &VkPhysicalDeviceDataGraphFeaturesARM::dataGraph,
       &VkPhysicalDeviceDataGraphFeaturesARM::dataGraphShaderModule);
  for (Optional* o : {&bfloat16_, &float8_, &replicated_}) o->unused[0] = o->unused[1] = 0;
}

Status Features::check() const {
  std::string missing;
  const auto need = [&](VkBool32 present, const char* name) {
    if (!present) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  need(v12_.vulkanMemoryModel, "vulkanMemoryModel");
  need(v13_.synchronization2, "synchronization2");
  need(tensors_.tensors, "tensors");
  need(graphs_.dataGraph, "dataGraph");
  need(graphs_.dataGraphShaderModule, "dataGraphShaderModule");
  if (missing.empty()) return {};
  return error("vulkan.feature", fmt::format("the device lacks what VGF files need: {}", missing));
}

}  // namespace tosaic::vulkan
