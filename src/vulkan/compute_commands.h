// SPDX-License-Identifier: Apache-2.0
// Commands for compute shaders: a command buffer with its fence, descriptor sets, and one dispatch put into it.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "vulkan/compute_memory.h"
#include "vulkan/compute_pipelines.h"

namespace tosaic::vulkan {

// Stages and accesses of barriers.
struct Access {
  VkPipelineStageFlags stage;
  VkAccessFlags kind;
};
inline constexpr Access shader_reads{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT},
    shader_writes{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT},
    shader_uses{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT},
    copy_reads{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT},
    copy_writes{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
    copy_uses{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT},
    host_reads{VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT};

struct Commands {
  explicit Commands(std::shared_ptr<Device> on) : device(std::move(on)) {}
  Status make();
  Status begin() const;
  Status end() const;
  void barrier(Access before, Access after) const;
  void copy(VkBuffer from, VkBuffer to, const VkBufferCopy& what) const;
  void dispatch(const Pipeline& pipeline, VkDescriptorSet set, const vulkan_program::Dispatch& d) const;

  std::shared_ptr<Device> device;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer handle = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  Undo undo;
};

struct BoundRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, bytes = 0;
  vulkan_program::View view = vulkan_program::View::buffer;
  VkDeviceSize behind = 0;  // bytes that the buffer has behind the range, which a view may reach: nobody writes there
  auto operator<=>(const BoundRange&) const = default;
};
// `range` of a dispatch, which lies there in the buffer. What is after it another dispatch may be writing.
BoundRange bound_range(const DeviceBuffer& buffer, VkDeviceSize offset, const vulkan_program::Range& range);
// A buffer's bytes for `bytes` that are seen by texel views, see DescriptorSets::view_of.
VkDeviceSize with_room_for_views(VkDeviceSize bytes);
// What a dispatch's bindings are, in order.
struct Bindings {
  VkDescriptorSetLayout layout = VK_NULL_HANDLE;
  std::vector<BoundRange> ranges;
};

class DescriptorSets {
 public:
  explicit DescriptorSets(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // Errors: vulkan.memory, vulkan.failed.
  Status make(const std::vector<Bindings>& all);
  VkDescriptorSet operator[](std::size_t i) const { return sets_[i]; }

 private:
  Status allocate(const std::vector<Bindings>& all);
  Status write(VkDescriptorSet set, const Bindings& bindings);
  Result<VkBufferView> view_of(const BoundRange& range);

  std::shared_ptr<Device> device_;
  std::vector<VkDescriptorSet> sets_;
  std::map<BoundRange, VkBufferView> views_;  // one for all dispatches that see a range alike
  Undo undo_;
};

}  // namespace tosaic::vulkan
