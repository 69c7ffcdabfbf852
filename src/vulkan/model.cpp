// SPDX-License-Identifier: Apache-2.0
#include "vulkan/model.h"

#include <fmt/format.h>
#include <cstring>

#include <algorithm>
#include <mutex>

#include "formats/vgf/vgf_graph.h"
#include "vulkan/call.h"
#include "vulkan/check_segment.h"
#include "vulkan/resources.h"
#include "vulkan/segment.h"

namespace tosaic::vulkan {

struct Model::Impl {
  explicit Impl(vgf::File read) : file(std::move(read)) {}

  Status make(const ModelOptions& options);
  Status make_commands();
  Status record();
  Status upload_constants();
  void barrier() const;
  Result<double> measured() const;

  // In the order in which they are needed: what is destroyed first stands last.
  const vgf::File file;
  std::vector<CheckedSegment> checked;
  std::shared_ptr<Device> device;
  std::unique_ptr<Resources> resources;
  std::shared_ptr<Memory> session_memory;
  std::vector<std::unique_ptr<SegmentOnDevice>> segments;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  VkQueryPool timestamps = VK_NULL_HANDLE;  // null: the device has none
  Undo undo;

  std::vector<TensorType> inputs, outputs;
  std::mutex running;
  double seconds = 0;
};

Status Model::Impl::make(const ModelOptions& options) {
  TOSAIC_TRY(checked, check_segments(file));
  for (const vgf::Slot& slot : file.inputs) {
    TOSAIC_TRY(TensorType type, vgf::type_of(file, slot.resource));
    inputs.push_back(std::move(type));
  }
  for (const vgf::Slot& slot : file.outputs) {
    TOSAIC_TRY(TensorType type, vgf::type_of(file, slot.resource));
    outputs.push_back(std::move(type));
  }
  TOSAIC_TRY(device, Device::open(options.device));
  const std::lock_guard lock(device->building);

  Resources::Options wanted;
  wanted.stage = options.stage;
  for (const CheckedSegment& s : checked) wanted.same.insert(wanted.same.end(), s.same.begin(), s.same.end());
  resources = std::make_unique<Resources>(file, device);
  TOSAIC_CHECK(resources->make(wanted));

  VkDeviceSize session_bytes = 0;
  std::uint32_t session_types = ~0u;
  for (const CheckedSegment& s : checked) {
    if (s.segment->kind == vgf::Kind::compute && !device->runs_shaders())
      return error("vulkan.segment", fmt::format("segment '{}' is a shader, which the data graph queue of {} does not "
                                                 "run",
                                                 s.segment->name, device->description()));
    auto made = SegmentOnDevice::make(file, s, *resources, device);
    if (!made.ok()) return std::move(made.error()).note(fmt::format("in segment '{}'", s.segment->name));
    session_bytes = std::max(session_bytes, (*made)->session_bytes());
    session_types &= (*made)->session_types();
    segments.push_back(*std::move(made));
  }
  if (session_bytes > 0) {
    TOSAIC_TRY(session_memory, device->transient(session_bytes, session_types));
    for (const auto& s : segments) TOSAIC_CHECK(s->bind_session(*session_memory));
  }
  device->save_pipeline_cache();
  TOSAIC_CHECK(make_commands());
  TOSAIC_CHECK(upload_constants());
  return record();
}

Status Model::Impl::make_commands() {
  const auto& vk = device->vk;
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.queueFamilyIndex = device->queue_family;
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  TOSAIC_CHECK(called("vkCreateCommandPool",
                      [&] { return vk.vkCreateCommandPool(device->handle, &pool_info, nullptr, &pool); }));
  undo.later([this] { device->vk.vkDestroyCommandPool(device->handle, pool, nullptr); });
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  TOSAIC_CHECK(called("vkAllocateCommandBuffers",
                      [&] { return vk.vkAllocateCommandBuffers(device->handle, &info, &commands); }));
  VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  TOSAIC_CHECK(called("vkCreateFence", [&] { return vk.vkCreateFence(device->handle, &fence_info, nullptr, &fence); }));
  undo.later([this] { device->vk.vkDestroyFence(device->handle, fence, nullptr); });
  if (device->nanoseconds_per_tick() == 0) return {};
  VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
  queries.queryCount = 2;
  TOSAIC_CHECK(called("vkCreateQueryPool",
                      [&] { return vk.vkCreateQueryPool(device->handle, &queries, nullptr, &timestamps); }));
  undo.later([this] { device->vk.vkDestroyQueryPool(device->handle, timestamps, nullptr); });
  return {};
}

// Everything before is done and seen by everything behind. Between segments, and towards what other models of the
// queue do with the memory that they share.
void Model::Impl::barrier() const {
  VkMemoryBarrier2 all{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
  all.srcStageMask = all.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  all.srcAccessMask = all.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
  VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  info.memoryBarrierCount = 1;
  info.pMemoryBarriers = &all;
  device->vk.vkCmdPipelineBarrier2(commands, &info);
}

Status Model::Impl::upload_constants() {
  const auto& vk = device->vk;
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  TOSAIC_CHECK(called("vkBeginCommandBuffer", [&] { return vk.vkBeginCommandBuffer(commands, &begin); }));
  bool any = false;
  TOSAIC_CHECK(called_void("vkCmdCopyBuffer", [&] { any = resources->record_constants(commands); }));
  TOSAIC_CHECK(called("vkEndCommandBuffer", [&] { return vk.vkEndCommandBuffer(commands); }));
  return any ? device->run(commands, fence, 0) : Status();
}

Status Model::Impl::record() {
  const auto& vk = device->vk;
  const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  TOSAIC_CHECK(called("vkBeginCommandBuffer", [&] { return vk.vkBeginCommandBuffer(commands, &begin); }));
  TOSAIC_CHECK(called_void("recording a command buffer", [&] {
    if (timestamps) vk.vkCmdResetQueryPool(commands, timestamps, 0, 2);
    barrier();
    resources->record_inputs(commands);
    barrier();
    if (timestamps) vk.vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, timestamps, 0);
    for (const auto& s : segments) {
      s->record(commands);
      barrier();
    }
    if (timestamps) vk.vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, timestamps, 1);
    resources->record_outputs(commands);
    VkMemoryBarrier2 to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
    to_host.srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    to_host.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
    to_host.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
    to_host.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;
    VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &to_host;
    vk.vkCmdPipelineBarrier2(commands, &info);
  }));
  return called("vkEndCommandBuffer", [&] { return vk.vkEndCommandBuffer(commands); });
}

Result<double> Model::Impl::measured() const {
  if (!timestamps) return 0.0;
  std::uint64_t ticks[2] = {};
  TOSAIC_CHECK(called("vkGetQueryPoolResults", [&] {
    return device->vk.vkGetQueryPoolResults(device->handle, timestamps, 0, 2, sizeof(ticks), ticks, sizeof(ticks[0]),
                                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  }));
  return static_cast<double>(ticks[1] - ticks[0]) * device->nanoseconds_per_tick() * 1e-9;
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(vgf::File file, const ModelOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(file));
  Status made = impl->make(options);
  if (impl->device) made = impl->device->noticed(std::move(made));
  TOSAIC_CHECK(std::move(made));
  return Model(std::move(impl));
}

const std::vector<TensorType>& Model::inputs() const { return impl_->inputs; }
const std::vector<TensorType>& Model::outputs() const { return impl_->outputs; }
std::string Model::device() const { return impl_->device->description(); }
double Model::device_seconds() const { return impl_->seconds; }

Status Model::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  Impl& m = *impl_;
  if (inputs.size() != m.inputs.size() || outputs.size() != m.outputs.size())
    return error("run.input-count", fmt::format("{} inputs and {} outputs are given, the model has {} and {}",
                                                inputs.size(), outputs.size(), m.inputs.size(), m.outputs.size()));
  const std::lock_guard lock(m.running);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::memcpy(m.resources->mapped(m.file.inputs[i].resource), inputs[i], m.inputs[i].storage_bytes());
  TOSAIC_CHECK(m.device->run(m.commands, m.fence, 0));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    std::memcpy(outputs[i], m.resources->mapped(m.file.outputs[i].resource), m.outputs[i].storage_bytes());
  TOSAIC_TRY(m.seconds, m.device->noticed(m.measured()));
  return {};
}

}  // namespace tosaic::vulkan
