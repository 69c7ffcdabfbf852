// SPDX-License-Identifier: Apache-2.0
// One segment of a VGF file on a device: its pipeline, its descriptors, its session; a graph or a compute shader.
#pragma once
#include <memory>
#include <vector>

#include "vulkan/check_segment.h"
#include "vulkan/resources.h"
#include "vulkan/undo.h"

namespace tosaic::vulkan {

class SegmentOnDevice {
 public:
  // Errors: vulkan.failed, vulkan.memory.
  static Result<std::unique_ptr<SegmentOnDevice>> make(const vgf::File& file, const CheckedSegment& checked,
                                                       const Resources& resources, std::shared_ptr<Device> device);
  // `checked` and what it points to must outlive the segment.
  SegmentOnDevice(const CheckedSegment& checked, std::shared_ptr<Device> device)
      : checked_(checked), device_(std::move(device)) {}

  // Memory that the session wants while it runs.
  VkDeviceSize session_bytes() const { return session_bytes_; }
  std::uint32_t session_types() const { return session_types_; }
  Status bind_session(const Memory& memory) const;
  void record(VkCommandBuffer commands) const;

 private:
  Status make_layout(const vgf::File& file);
  Status make_graph_pipeline(const Resources& resources);
  Status make_compute_pipeline(const vgf::Module& module);
  Result<VkShaderModule> make_module(const Bytes& code);
  Status make_session();
  Status make_descriptors(const vgf::File& file, const Resources& resources);

  const CheckedSegment& checked_;
  std::shared_ptr<Device> device_;
  std::vector<VkDescriptorSetLayout> set_layouts_;  // by set number
  std::vector<VkDescriptorSet> sets_;               // as many
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDataGraphPipelineSessionARM session_ = VK_NULL_HANDLE;
  std::vector<VkBindDataGraphPipelineSessionMemoryInfoARM> session_objects_;
  VkDeviceSize session_bytes_ = 0;
  std::uint32_t session_types_ = ~0u;
  Undo undo_;
};

}  // namespace tosaic::vulkan
