// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "vulkan/call.h"
#include "vulkan/compute_memory.h"
#include "vulkan/compute_pipelines.h"
#include "vulkan/compute_tiers.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// Of memory that brings constants to the device.
constexpr std::size_t most_staging_bytes = std::size_t{16} << 20;
// Blocking at once costs about 20 us more than looking at the fence, which on a CPU device takes time from the work.
constexpr double spin_seconds = 200e-6;

bool overlap(const Range& a, const Range& b) {
  return a.arena == b.arena && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Whether a dispatch has to wait for one of those since the last barrier.
class Hazards {
 public:
  bool conflicts(const Dispatch& d) const {
    return std::ranges::any_of(d.ranges, [&](const Range& mine) {
      return std::ranges::any_of(
          open_, [&](const Range& other) { return (mine.written || other.written) && overlap(mine, other); });
    });
  }
  void add(const Dispatch& d) {
    for (const Range& r : d.ranges)
      if (r.arena != Arena::constants) open_.push_back(r);
  }
  void clear() { open_.clear(); }

 private:
  std::vector<Range> open_;
};

// A command buffer and what belongs to it.
struct Commands {
  explicit Commands(std::shared_ptr<Device> on) : device(std::move(on)) {}
  Status make() {
    const auto& vk = device->vk;
    VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    info.queueFamilyIndex = device->queue_family;
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    TOSAIC_CHECK(
        called("vkCreateCommandPool", [&] { return vk.vkCreateCommandPool(device->handle, &info, nullptr, &pool); }));
    undo.later([this] { device->vk.vkDestroyCommandPool(device->handle, pool, nullptr); });
    VkCommandBufferAllocateInfo buffer{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    buffer.commandPool = pool;
    buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    buffer.commandBufferCount = 1;
    TOSAIC_CHECK(called("vkAllocateCommandBuffers",
                        [&] { return vk.vkAllocateCommandBuffers(device->handle, &buffer, &handle); }));
    VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    TOSAIC_CHECK(
        called("vkCreateFence", [&] { return vk.vkCreateFence(device->handle, &fence_info, nullptr, &fence); }));
    undo.later([this] { device->vk.vkDestroyFence(device->handle, fence, nullptr); });
    return {};
  }
  Status begin() const {
    const VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    return called("vkBeginCommandBuffer", [&] { return device->vk.vkBeginCommandBuffer(handle, &info); });
  }
  Status end() const {
    return called("vkEndCommandBuffer", [&] { return device->vk.vkEndCommandBuffer(handle); });
  }
  void barrier(VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to, VkAccessFlags read) const {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = written;
    memory.dstAccessMask = read;
    device->vk.vkCmdPipelineBarrier(handle, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }
  void copy(VkBuffer from, VkBuffer to, const VkBufferCopy& what) const {
    device->vk.vkCmdCopyBuffer(handle, from, to, 1, &what);
  }

  std::shared_ptr<Device> device;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer handle = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  Undo undo;
};

constexpr VkPipelineStageFlags compute_stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               copy_stage = VK_PIPELINE_STAGE_TRANSFER_BIT, host_stage = VK_PIPELINE_STAGE_HOST_BIT;

}  // namespace

// What all clones share.
struct ComputeModel::Shared {
  vulkan_program::Program program;
  std::shared_ptr<Device> device;
  std::unique_ptr<DeviceBuffer> constants;
  std::unique_ptr<Pipelines> pipelines;

  const vulkan_program::Tier& tier() const { return program.tiers.front(); }

  Status make(const std::string& wanted) {
    TOSAIC_TRY(device, Device::open(wanted, Use::compute));
    const std::lock_guard lock(device->building);
    pipelines = std::make_unique<Pipelines>(device);
    TOSAIC_CHECK(choose_tier());
    TOSAIC_CHECK(pipelines->make(tier()));
    device->save_pipeline_cache();
    return upload();
  }

  // The best one whose dispatches the device takes, too; the others go.
  Status choose_tier() {
    TOSAIC_TRY(const std::vector<std::size_t> able, tiers_of_program(*device, program));
    Status checked;
    for (std::size_t i : able) {
      checked = pipelines->check(program.tiers[i]);
      if (!checked.ok()) continue;
      if (i != 0) program.tiers[0] = std::move(program.tiers[i]);
      program.tiers.resize(1);
      break;
    }
    return checked;
  }

  Status upload() {
    const bool unified = device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                         device->info().type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    const std::size_t bytes = program.constants.size();
    TOSAIC_TRY(constants, DeviceBuffer::make(device, bytes, unified ? Placement::shared : Placement::device));
    if (constants->mapped()) {
      if (bytes) std::memcpy(constants->mapped(), program.constants.data(), bytes);
    } else if (bytes) {
      TOSAIC_TRY(const auto staging,
                 DeviceBuffer::make(device, std::min(bytes, most_staging_bytes), Placement::upload));
      Commands commands(device);
      TOSAIC_CHECK(commands.make());
      for (std::size_t at = 0; at < bytes; at += most_staging_bytes) {
        const std::size_t part = std::min(bytes - at, most_staging_bytes);
        std::memcpy(staging->mapped(), program.constants.data() + at, part);
        TOSAIC_CHECK(commands.begin());
        commands.copy(staging->handle(), constants->handle(), {0, at, part});
        commands.barrier(copy_stage, VK_ACCESS_TRANSFER_WRITE_BIT, compute_stage, VK_ACCESS_SHADER_READ_BIT);
        TOSAIC_CHECK(commands.end());
        TOSAIC_CHECK(device->run(commands.handle, commands.fence));
      }
    }
    program.constants = {};  // the device has them
    return {};
  }
};

struct ComputeModel::Session {
  explicit Session(Shared& of) : shared(of), device(of.device), commands(of.device) {}

  Shared& shared;
  std::shared_ptr<Device> device;
  std::unique_ptr<DeviceBuffer> activations, io, upload, readback;  // the last two where the host does not see io
  Commands commands;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets;  // by dispatch
  VkQueryPool timestamps = VK_NULL_HANDLE;
  bool timed = false;
  double seconds = 0;
  std::vector<double> dispatch_seconds;
  Undo undo;

  Status make() {
    const auto& tier = shared.tier();
    TOSAIC_TRY(activations, DeviceBuffer::make(device, tier.activation_bytes, Placement::device));
    TOSAIC_TRY(io, DeviceBuffer::make(device, shared.program.io_bytes, Placement::shared));
    if (!io->mapped()) { TOSAIC_TRY(upload, DeviceBuffer::make(device, io->bytes(), Placement::upload)); }
    if (!io->cached()) { TOSAIC_TRY(readback, DeviceBuffer::make(device, io->bytes(), Placement::readback)); }
    TOSAIC_CHECK(commands.make());
    TOSAIC_CHECK(make_descriptors());
    TOSAIC_CHECK(make_timestamps());
    return record();
  }

  Status make_timestamps() {
    if (device->nanoseconds_per_tick() == 0) return {};
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = static_cast<std::uint32_t>(shared.tier().dispatches.size()) + 2;
    TOSAIC_CHECK(called("vkCreateQueryPool",
                        [&] { return device->vk.vkCreateQueryPool(device->handle, &info, nullptr, &timestamps); }));
    undo.later([this] { device->vk.vkDestroyQueryPool(device->handle, timestamps, nullptr); });
    return {};
  }

  VkBuffer buffer_of(Arena arena) const {
    return (arena == Arena::constants ? *shared.constants : arena == Arena::io ? *io : *activations).handle();
  }

  Status make_descriptors() {
    const auto& vk = device->vk;
    const auto& dispatches = shared.tier().dispatches;
    if (dispatches.empty()) return {};
    std::uint32_t buffers = 0;
    for (const Dispatch& d : dispatches) buffers += static_cast<std::uint32_t>(d.ranges.size());
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(buffers, 1u)};
    VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    info.maxSets = static_cast<std::uint32_t>(dispatches.size());
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    TOSAIC_CHECK(called("vkCreateDescriptorPool",
                        [&] { return vk.vkCreateDescriptorPool(device->handle, &info, nullptr, &descriptors); }));
    undo.later([this] { device->vk.vkDestroyDescriptorPool(device->handle, descriptors, nullptr); });
    std::vector<VkDescriptorSetLayout> layouts;
    for (const Dispatch& d : dispatches) layouts.push_back((*shared.pipelines)[d.module].set_layout);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptors;
    allocate.descriptorSetCount = static_cast<std::uint32_t>(layouts.size());
    allocate.pSetLayouts = layouts.data();
    sets.resize(layouts.size());
    TOSAIC_CHECK(called("vkAllocateDescriptorSets",
                        [&] { return vk.vkAllocateDescriptorSets(device->handle, &allocate, sets.data()); }));
    for (std::size_t i = 0; i < dispatches.size(); ++i) write_set(sets[i], dispatches[i]);
    return {};
  }

  void write_set(VkDescriptorSet set, const Dispatch& d) const {
    std::vector<VkDescriptorBufferInfo> infos;
    for (const Range& r : d.ranges) infos.push_back({buffer_of(r.arena), r.offset, r.bytes});
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    for (std::uint32_t b = 0; b < infos.size(); ++b) {
      write.dstBinding = b;
      write.descriptorCount = 1;
      write.pBufferInfo = &infos[b];
      device->vk.vkUpdateDescriptorSets(device->handle, 1, &write, 0, nullptr);
    }
  }

  Status record() {
    TOSAIC_CHECK(commands.begin());
    TOSAIC_CHECK(called_void("recording a command buffer", [&] {
      if (timestamps) {
        const auto count = static_cast<std::uint32_t>(shared.tier().dispatches.size()) + 2;
        device->vk.vkCmdResetQueryPool(commands.handle, timestamps, 0, count);
      }
      record_inputs();
      stamp(0);
      record_dispatches();
      stamp(static_cast<std::uint32_t>(shared.tier().dispatches.size()) + 1);
      record_outputs();
    }));
    return commands.end();
  }

  void stamp(std::uint32_t number) const {
    if (timestamps)
      device->vk.vkCmdWriteTimestamp(commands.handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps, number);
  }

  void record_inputs() const {
    if (upload) {
      for (const auto& t : shared.program.inputs)
        if (const VkDeviceSize bytes = t.type.storage_bytes())
          commands.copy(upload->handle(), io->handle(), {t.offset, t.offset, bytes});
      commands.barrier(copy_stage, VK_ACCESS_TRANSFER_WRITE_BIT, compute_stage, VK_ACCESS_SHADER_READ_BIT);
    }
  }

  void record_dispatches() {
    const auto& vk = device->vk;
    Hazards hazards;
    std::uint32_t number = 0;
    for (const Dispatch& d : shared.tier().dispatches) {
      if (hazards.conflicts(d) || timed) {
        commands.barrier(compute_stage, VK_ACCESS_SHADER_WRITE_BIT, compute_stage,
                         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        hazards.clear();
      }
      hazards.add(d);
      const Pipeline& p = (*shared.pipelines)[d.module];
      vk.vkCmdBindPipeline(commands.handle, VK_PIPELINE_BIND_POINT_COMPUTE, p.pipeline);
      vk.vkCmdBindDescriptorSets(commands.handle, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &sets[number], 0,
                                 nullptr);
      // All of them: what a shader reads of push constants is defined.
      std::array<std::uint32_t, vulkan_program::most_pushes> pushes{};
      std::ranges::copy(d.pushes, pushes.begin());
      vk.vkCmdPushConstants(commands.handle, p.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(pushes), pushes.data());
      vk.vkCmdDispatch(commands.handle, d.groups[0], d.groups[1], d.groups[2]);
      ++number;
      if (timed) stamp(number);
    }
  }

  void record_outputs() const {
    if (readback) {
      commands.barrier(compute_stage, VK_ACCESS_SHADER_WRITE_BIT, copy_stage, VK_ACCESS_TRANSFER_READ_BIT);
      for (const auto& t : shared.program.outputs)
        if (const VkDeviceSize bytes = t.type.storage_bytes())
          commands.copy(io->handle(), readback->handle(), {t.offset, t.offset, bytes});
      commands.barrier(copy_stage, VK_ACCESS_TRANSFER_WRITE_BIT, host_stage, VK_ACCESS_HOST_READ_BIT);
    } else {
      commands.barrier(compute_stage, VK_ACCESS_SHADER_WRITE_BIT, host_stage, VK_ACCESS_HOST_READ_BIT);
    }
  }

  Result<std::uint64_t> ticks(std::uint32_t number) const {
    std::uint64_t value = 0;
    TOSAIC_CHECK(called("vkGetQueryPoolResults", [&] {
      return device->vk.vkGetQueryPoolResults(device->handle, timestamps, number, 1, sizeof(value), &value,
                                              sizeof(value), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    }));
    return value;
  }

  Status read_clock() {
    if (!timestamps) return {};
    const auto dispatches = static_cast<std::uint32_t>(shared.tier().dispatches.size());
    const double tick = device->nanoseconds_per_tick() * 1e-9;
    TOSAIC_TRY(const std::uint64_t begin, ticks(0));
    TOSAIC_TRY(const std::uint64_t end, ticks(dispatches + 1));
    seconds = static_cast<double>(end - begin) * tick;
    if (!timed) return {};
    dispatch_seconds.clear();
    std::uint64_t before = begin;
    for (std::uint32_t i = 1; i <= dispatches; ++i) {
      TOSAIC_TRY(const std::uint64_t now, ticks(i));
      dispatch_seconds.push_back(static_cast<double>(now - before) * tick);
      before = now;
    }
    return {};
  }
};

ComputeModel::ComputeModel(std::shared_ptr<Shared> shared, std::unique_ptr<Session> session)
    : shared_(std::move(shared)), session_(std::move(session)) {}
ComputeModel::ComputeModel(ComputeModel&&) noexcept = default;
ComputeModel& ComputeModel::operator=(ComputeModel&& other) noexcept {
  session_ = std::move(other.session_);  // before what it uses
  shared_ = std::move(other.shared_);
  return *this;
}
ComputeModel::~ComputeModel() { session_.reset(); }

Result<ComputeModel> ComputeModel::load(vulkan_program::Program program, const std::string& device) {
  auto shared = std::make_shared<Shared>();
  shared->program = std::move(program);
  TOSAIC_CHECK(shared->make(device));
  auto session = std::make_unique<Session>(*shared);
  TOSAIC_CHECK(session->make());
  return ComputeModel(std::move(shared), std::move(session));
}

Result<ComputeModel> ComputeModel::clone() const {
  auto session = std::make_unique<Session>(*shared_);
  TOSAIC_CHECK(session->make());
  return ComputeModel(shared_, std::move(session));
}

const std::vector<vulkan_program::Tensor>& ComputeModel::inputs() const { return shared_->program.inputs; }
const std::vector<vulkan_program::Tensor>& ComputeModel::outputs() const { return shared_->program.outputs; }
std::string ComputeModel::device() const { return shared_->device->description(); }
const std::string& ComputeModel::tier() const { return shared_->tier().name; }
std::uint64_t ComputeModel::memory_bytes() const {
  return shared_->tier().activation_bytes + shared_->program.io_bytes;
}
double ComputeModel::device_seconds() const { return session_->seconds; }

Status ComputeModel::run(std::span<const void* const> in, std::span<void* const> out) {
  Session& s = *session_;
  const auto &to = inputs(), &from = outputs();
  if (in.size() != to.size() || out.size() != from.size())
    return error("run.input-count", fmt::format("{} inputs and {} outputs are given, the model has {} and {}",
                                                in.size(), out.size(), to.size(), from.size()));
  std::byte* const write = (s.upload ? *s.upload : *s.io).mapped();
  for (std::size_t i = 0; i < in.size(); ++i)
    if (const std::size_t bytes = to[i].type.storage_bytes()) std::memcpy(write + to[i].offset, in[i], bytes);
  const bool is_cpu = s.device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  TOSAIC_CHECK(s.device->run(s.commands.handle, s.commands.fence, is_cpu ? 0 : spin_seconds));
  const std::byte* const read = (s.readback ? *s.readback : *s.io).mapped();
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const std::size_t bytes = from[i].type.storage_bytes()) std::memcpy(out[i], read + from[i].offset, bytes);
  return s.read_clock();
}

Status ComputeModel::measure(bool on) {
  if (session_->timed == on) return {};
  session_->timed = on;
  session_->dispatch_seconds.clear();
  return session_->record();
}

std::vector<DispatchTime> ComputeModel::times() const {
  std::vector<DispatchTime> times;
  const auto& dispatches = shared_->tier().dispatches;
  for (std::size_t i = 0; i < session_->dispatch_seconds.size(); ++i)
    times.push_back({dispatches[i].kernel, dispatches[i].value, session_->dispatch_seconds[i]});
  return times;
}

}  // namespace tosaic::vulkan
