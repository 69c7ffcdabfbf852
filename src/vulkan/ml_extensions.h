// SPDX-License-Identifier: Apache-2.0
// The parts of VK_ARM_tensors and VK_ARM_data_graph that the VGF runtime calls, for Vulkan headers that do not have
// them yet (those of 1.3 do not), under the names that newer headers use; and the functions, which the loader gives by
// name. Sizes and offsets are held to the 64-bit ABI below.
#pragma once
#include <volk.h>

#include <cstddef>
#include <cstdint>

#ifndef VK_ARM_tensors
VK_DEFINE_NON_DISPATCHABLE_HANDLE(VkTensorARM)
VK_DEFINE_NON_DISPATCHABLE_HANDLE(VkTensorViewARM)

enum VkTensorTilingARM : std::int32_t { VK_TENSOR_TILING_OPTIMAL_ARM = 0, VK_TENSOR_TILING_LINEAR_ARM = 1 };
inline constexpr VkFlags64 VK_TENSOR_USAGE_SHADER_BIT_ARM = 2;
inline constexpr auto VK_DESCRIPTOR_TYPE_TENSOR_ARM = static_cast<VkDescriptorType>(1000460000);

struct VkTensorDescriptionARM {
  VkStructureType sType;
  const void* pNext;
  VkTensorTilingARM tiling;
  VkFormat format;
  std::uint32_t dimensionCount;
  const std::int64_t* pDimensions;
  const std::int64_t* pStrides;
  VkFlags64 usage;
};
struct VkTensorCreateInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkFlags64 flags;
  const VkTensorDescriptionARM* pDescription;
  VkSharingMode sharingMode;
  std::uint32_t queueFamilyIndexCount;
  const std::uint32_t* pQueueFamilyIndices;
};
struct VkTensorViewCreateInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkFlags64 flags;
  VkTensorARM tensor;
  VkFormat format;
};
struct VkTensorMemoryRequirementsInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkTensorARM tensor;
};
struct VkBindTensorMemoryInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkTensorARM tensor;
  VkDeviceMemory memory;
  VkDeviceSize memoryOffset;
};
struct VkWriteDescriptorSetTensorARM {
  VkStructureType sType;
  const void* pNext;
  std::uint32_t tensorViewCount;
  const VkTensorViewARM* pTensorViews;
};
struct VkPhysicalDeviceTensorPropertiesARM {
  VkStructureType sType;
  void* pNext;
  std::uint32_t maxTensorDimensionCount;
  std::uint64_t maxTensorElements, maxPerDimensionTensorElements;
  std::int64_t maxTensorStride;
  std::uint64_t maxTensorSize;
  std::uint32_t maxTensorShaderAccessArrayLength, maxTensorShaderAccessSize, maxDescriptorSetStorageTensors,
      maxPerStageDescriptorSetStorageTensors, maxDescriptorSetUpdateAfterBindStorageTensors,
      maxPerStageDescriptorUpdateAfterBindStorageTensors;
  VkBool32 shaderStorageTensorArrayNonUniformIndexingNative;
  VkShaderStageFlags shaderTensorSupportedStages;
};
struct VkPhysicalDeviceTensorFeaturesARM {
  VkStructureType sType;
  void* pNext;
  VkBool32 tensorNonPacked, shaderTensorAccess, shaderStorageTensorArrayDynamicIndexing,
      shaderStorageTensorArrayNonUniformIndexing, descriptorBindingStorageTensorUpdateAfterBind, tensors;
};
#endif

#ifndef VK_ARM_data_graph
VK_DEFINE_NON_DISPATCHABLE_HANDLE(VkDataGraphPipelineSessionARM)

inline constexpr VkFlags64 VK_TENSOR_USAGE_DATA_GRAPH_BIT_ARM = 0x20;
inline constexpr auto VK_PIPELINE_BIND_POINT_DATA_GRAPH_ARM = static_cast<VkPipelineBindPoint>(1000507000);
inline constexpr auto VK_QUEUE_DATA_GRAPH_BIT_ARM = static_cast<VkQueueFlagBits>(0x400);

struct VkPhysicalDeviceDataGraphFeaturesARM {
  VkStructureType sType;
  void* pNext;
  VkBool32 dataGraph, dataGraphUpdateAfterBind, dataGraphSpecializationConstants, dataGraphDescriptorBuffer,
      dataGraphShaderModule;
};
struct VkDataGraphPipelineConstantARM {
  VkStructureType sType;
  const void* pNext;
  std::uint32_t id;
  const void* pConstantData;
};
struct VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM {
  VkStructureType sType;
  const void* pNext;
  std::uint32_t dimension, zeroCount, groupSize;
};
struct VkDataGraphPipelineResourceInfoARM {
  VkStructureType sType;
  const void* pNext;
  std::uint32_t descriptorSet, binding, arrayElement;
};
struct VkDataGraphPipelineCreateInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkFlags64 flags;
  VkPipelineLayout layout;
  std::uint32_t resourceInfoCount;
  const VkDataGraphPipelineResourceInfoARM* pResourceInfos;
};
struct VkDataGraphPipelineShaderModuleCreateInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkShaderModule module;
  const char* pName;
  const VkSpecializationInfo* pSpecializationInfo;
  std::uint32_t constantCount;
  const VkDataGraphPipelineConstantARM* pConstants;
};
struct VkDataGraphPipelineSessionCreateInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkFlags64 flags;
  VkPipeline dataGraphPipeline;
};
struct VkDataGraphPipelineSessionBindPointRequirementsInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkDataGraphPipelineSessionARM session;
};
struct VkDataGraphPipelineSessionBindPointRequirementARM {
  VkStructureType sType;
  void* pNext;
  std::int32_t bindPoint, bindPointType;
  std::uint32_t numObjects;
};
struct VkDataGraphPipelineSessionMemoryRequirementsInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkDataGraphPipelineSessionARM session;
  std::int32_t bindPoint;
  std::uint32_t objectIndex;
};
struct VkBindDataGraphPipelineSessionMemoryInfoARM {
  VkStructureType sType;
  const void* pNext;
  VkDataGraphPipelineSessionARM session;
  std::int32_t bindPoint;
  std::uint32_t objectIndex;
  VkDeviceMemory memory;
  VkDeviceSize memoryOffset;
};
struct VkDataGraphPipelineDispatchInfoARM;
#endif

static_assert(sizeof(VkTensorDescriptionARM) == 56 && offsetof(VkTensorDescriptionARM, pDimensions) == 32 &&
              offsetof(VkTensorDescriptionARM, usage) == 48);
static_assert(sizeof(VkTensorCreateInfoARM) == 48 && offsetof(VkTensorCreateInfoARM, pDescription) == 24 &&
              offsetof(VkTensorCreateInfoARM, pQueueFamilyIndices) == 40);
static_assert(sizeof(VkTensorViewCreateInfoARM) == 40 && offsetof(VkTensorViewCreateInfoARM, format) == 32);
static_assert(sizeof(VkTensorMemoryRequirementsInfoARM) == 24);
static_assert(sizeof(VkBindTensorMemoryInfoARM) == 40 && offsetof(VkBindTensorMemoryInfoARM, memoryOffset) == 32);
static_assert(sizeof(VkWriteDescriptorSetTensorARM) == 32 &&
              offsetof(VkWriteDescriptorSetTensorARM, pTensorViews) == 24);
static_assert(sizeof(VkPhysicalDeviceTensorPropertiesARM) == 88 &&
              offsetof(VkPhysicalDeviceTensorPropertiesARM, maxTensorElements) == 24 &&
              offsetof(VkPhysicalDeviceTensorPropertiesARM, maxTensorSize) == 48 &&
              offsetof(VkPhysicalDeviceTensorPropertiesARM, shaderTensorSupportedStages) == 84);
static_assert(sizeof(VkPhysicalDeviceTensorFeaturesARM) == 40 &&
              offsetof(VkPhysicalDeviceTensorFeaturesARM, tensors) == 36);
static_assert(sizeof(VkPhysicalDeviceDataGraphFeaturesARM) == 40 &&
              offsetof(VkPhysicalDeviceDataGraphFeaturesARM, dataGraphShaderModule) == 32);
static_assert(sizeof(VkDataGraphPipelineConstantARM) == 32 &&
              offsetof(VkDataGraphPipelineConstantARM, pConstantData) == 24);
static_assert(sizeof(VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM) == 32 &&
              offsetof(VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM, groupSize) == 24);
static_assert(sizeof(VkDataGraphPipelineResourceInfoARM) == 32 &&
              offsetof(VkDataGraphPipelineResourceInfoARM, arrayElement) == 24);
static_assert(sizeof(VkDataGraphPipelineCreateInfoARM) == 48 &&
              offsetof(VkDataGraphPipelineCreateInfoARM, layout) == 24 &&
              offsetof(VkDataGraphPipelineCreateInfoARM, pResourceInfos) == 40);
static_assert(sizeof(VkDataGraphPipelineShaderModuleCreateInfoARM) == 56 &&
              offsetof(VkDataGraphPipelineShaderModuleCreateInfoARM, pConstants) == 48);
static_assert(sizeof(VkDataGraphPipelineSessionCreateInfoARM) == 32 &&
              offsetof(VkDataGraphPipelineSessionCreateInfoARM, dataGraphPipeline) == 24);
static_assert(sizeof(VkDataGraphPipelineSessionBindPointRequirementsInfoARM) == 24);
static_assert(sizeof(VkDataGraphPipelineSessionBindPointRequirementARM) == 32 &&
              offsetof(VkDataGraphPipelineSessionBindPointRequirementARM, numObjects) == 24);
static_assert(sizeof(VkDataGraphPipelineSessionMemoryRequirementsInfoARM) == 32 &&
              offsetof(VkDataGraphPipelineSessionMemoryRequirementsInfoARM, objectIndex) == 28);
static_assert(sizeof(VkBindDataGraphPipelineSessionMemoryInfoARM) == 48 &&
              offsetof(VkBindDataGraphPipelineSessionMemoryInfoARM, memoryOffset) == 40);

namespace tosaic::vulkan {

// Numbers of VkStructureType, by what they mark.
namespace stype {
inline constexpr auto tensor = static_cast<VkStructureType>(1000460000);
inline constexpr auto tensor_view = static_cast<VkStructureType>(1000460001);
inline constexpr auto bind_tensor = static_cast<VkStructureType>(1000460002);
inline constexpr auto write_tensor = static_cast<VkStructureType>(1000460003);
inline constexpr auto tensor_properties = static_cast<VkStructureType>(1000460004);
inline constexpr auto tensor_description = static_cast<VkStructureType>(1000460006);
inline constexpr auto tensor_requirements = static_cast<VkStructureType>(1000460007);
inline constexpr auto tensor_features = static_cast<VkStructureType>(1000460009);
inline constexpr auto graph_pipeline = static_cast<VkStructureType>(1000507000);
inline constexpr auto session = static_cast<VkStructureType>(1000507001);
inline constexpr auto graph_resource = static_cast<VkStructureType>(1000507002);
inline constexpr auto graph_constant = static_cast<VkStructureType>(1000507003);
inline constexpr auto session_requirements = static_cast<VkStructureType>(1000507004);
inline constexpr auto bind_session = static_cast<VkStructureType>(1000507005);
inline constexpr auto graph_features = static_cast<VkStructureType>(1000507006);
inline constexpr auto graph_module = static_cast<VkStructureType>(1000507007);
inline constexpr auto bind_points = static_cast<VkStructureType>(1000507011);
inline constexpr auto bind_point = static_cast<VkStructureType>(1000507012);
inline constexpr auto sparsity = static_cast<VkStructureType>(1000507015);
inline constexpr auto bfloat16_features = static_cast<VkStructureType>(1000141000);
inline constexpr auto replicated_features = static_cast<VkStructureType>(1000564000);
inline constexpr auto float8_features = static_cast<VkStructureType>(1000567000);
}  // namespace stype

// The functions of both extensions, of one device.
struct MlFunctions {
  VkResult(VKAPI_PTR* CreateTensorARM)(VkDevice, const VkTensorCreateInfoARM*, const VkAllocationCallbacks*,
                                       VkTensorARM*);
  void(VKAPI_PTR* DestroyTensorARM)(VkDevice, VkTensorARM, const VkAllocationCallbacks*);
  VkResult(VKAPI_PTR* CreateTensorViewARM)(VkDevice, const VkTensorViewCreateInfoARM*, const VkAllocationCallbacks*,
                                           VkTensorViewARM*);
  void(VKAPI_PTR* DestroyTensorViewARM)(VkDevice, VkTensorViewARM, const VkAllocationCallbacks*);
  void(VKAPI_PTR* GetTensorMemoryRequirementsARM)(VkDevice, const VkTensorMemoryRequirementsInfoARM*,
                                                  VkMemoryRequirements2*);
  VkResult(VKAPI_PTR* BindTensorMemoryARM)(VkDevice, std::uint32_t, const VkBindTensorMemoryInfoARM*);
  VkResult(VKAPI_PTR* CreateDataGraphPipelinesARM)(VkDevice, VkDeferredOperationKHR, VkPipelineCache, std::uint32_t,
                                                   const VkDataGraphPipelineCreateInfoARM*,
                                                   const VkAllocationCallbacks*, VkPipeline*);
  VkResult(VKAPI_PTR* CreateDataGraphPipelineSessionARM)(VkDevice, const VkDataGraphPipelineSessionCreateInfoARM*,
                                                         const VkAllocationCallbacks*, VkDataGraphPipelineSessionARM*);
  VkResult(VKAPI_PTR* GetDataGraphPipelineSessionBindPointRequirementsARM)(
      VkDevice, const VkDataGraphPipelineSessionBindPointRequirementsInfoARM*, std::uint32_t*,
      VkDataGraphPipelineSessionBindPointRequirementARM*);
  void(VKAPI_PTR* GetDataGraphPipelineSessionMemoryRequirementsARM)(
      VkDevice, const VkDataGraphPipelineSessionMemoryRequirementsInfoARM*, VkMemoryRequirements2*);
  VkResult(VKAPI_PTR* BindDataGraphPipelineSessionMemoryARM)(VkDevice, std::uint32_t,
                                                             const VkBindDataGraphPipelineSessionMemoryInfoARM*);
  void(VKAPI_PTR* DestroyDataGraphPipelineSessionARM)(VkDevice, VkDataGraphPipelineSessionARM,
                                                      const VkAllocationCallbacks*);
  void(VKAPI_PTR* CmdDispatchDataGraphARM)(VkCommandBuffer, VkDataGraphPipelineSessionARM,
                                           const VkDataGraphPipelineDispatchInfoARM*);
};

}  // namespace tosaic::vulkan
