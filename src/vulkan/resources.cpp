// SPDX-License-Identifier: Apache-2.0
#include "vulkan/resources.h"

#include <fmt/format.h>
#include <cstring>

#include <algorithm>

#include "formats/vgf/vgf_graph.h"
#include "vulkan/call.h"

namespace tosaic::vulkan {
namespace {

constexpr VkMemoryPropertyFlags on_host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

bool is_tensor(const vgf::Resource& r) {
  return r.descriptor_type == vgf::tensor_descriptor || r.descriptor_type == vgf::none;
}

VkBufferUsageFlags buffer_usage(const vgf::Resource& r) {
  return r.descriptor_type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ? VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
                                                                : VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
}

}  // namespace

std::unique_ptr<TensorDescription> describe_tensor(const vgf::Resource& resource, VkFlags64 usage) {
  auto made = std::make_unique<TensorDescription>();
  made->dims = resource.shape.empty() ? std::vector<std::int64_t>{1} : resource.shape;  // no tensors of rank 0
  made->description.tiling = VK_TENSOR_TILING_LINEAR_ARM;
  made->description.format = static_cast<VkFormat>(resource.format);
  made->description.dimensionCount = static_cast<std::uint32_t>(made->dims.size());
  made->description.pDimensions = made->dims.data();
  made->description.usage = usage;
  return made;
}

Status Resources::check(std::uint32_t resource) const {
  const vgf::Resource& r = file_.resources[resource];
  if (!is_tensor(r) && r.descriptor_type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER &&
      r.descriptor_type != VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER)
    return error("vulkan.resource", fmt::format("resource {} has Vulkan's descriptor type {}; tosaic binds tensors and "
                                                "buffers",
                                                resource, r.descriptor_type));
  TOSAIC_TRY(const TensorType type, vgf::type_of(file_, resource));
  if (is_tensor(r) && r.shape.size() > device_->most_dims())
    return error("vulkan.resource", fmt::format("resource {} has rank {}, {} takes tensors up to rank {}", resource,
                                                r.shape.size(), device_->description(), device_->most_dims()));
  if (is_tensor(r) && type.storage_bytes() > device_->most_tensor_bytes())
    return error("vulkan.memory",
                 fmt::format("resource {} has {} bytes, {} takes tensors up to {}", resource, type.storage_bytes(),
                             device_->description(), device_->most_tensor_bytes()));
  auto packed = static_cast<std::int64_t>(storage_size(type.dtype));
  for (std::size_t d = r.shape.size(); d-- > 0; packed *= r.shape[d]) {
    if (r.shape[d] == 0)
      return error("vulkan.resource", fmt::format("resource {} has no elements, Vulkan has no such tensors", resource));
    if (!r.strides.empty() && (r.strides.size() != r.shape.size() || r.strides[d] != packed))
      return error("vulkan.resource", fmt::format("resource {} is not packed in row-major order", resource));
  }
  return {};
}

// Each resource stands for itself, an alias group and what `options` adds for one of its members.
void Resources::join(const Options& options) {
  root_ = vgf::first_of_memory(file_);
  for (const auto& [a, b] : options.same) {
    const std::uint32_t from = root_[b], to = root_[a];
    std::ranges::replace(root_, from, to);
  }
}

Result<VkBuffer> Resources::make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = usage;
  VkBuffer buffer = VK_NULL_HANDLE;
  TOSAIC_CHECK(
      called("vkCreateBuffer", [&] { return device_->vk.vkCreateBuffer(device_->handle, &info, nullptr, &buffer); }));
  undo_.later([this, buffer] { device_->vk.vkDestroyBuffer(device_->handle, buffer, nullptr); });
  return buffer;
}

Status Resources::create(std::uint32_t resource, VkFlags64 usage) {
  Made& made = made_[resource];
  const vgf::Resource& r = file_.resources[resource];
  if (!is_tensor(r)) {
    TOSAIC_TRY(const TensorType type, vgf::type_of(file_, resource));
    TOSAIC_TRY(made.buffer, make_buffer(type.storage_bytes(), buffer_usage(r)));
    device_->vk.vkGetBufferMemoryRequirements(device_->handle, made.buffer, &made.needs);
    return {};
  }
  made.description = describe_tensor(r, usage);
  VkTensorCreateInfoARM info{stype::tensor};
  info.pDescription = &made.description->description;
  TOSAIC_CHECK(called("vkCreateTensorARM",
                      [&] { return device_->ml.CreateTensorARM(device_->handle, &info, nullptr, &made.tensor); }));
  undo_.later([this, tensor = made.tensor] { device_->ml.DestroyTensorARM(device_->handle, tensor, nullptr); });
  VkTensorMemoryRequirementsInfoARM which{stype::tensor_requirements};
  which.tensor = made.tensor;
  VkMemoryRequirements2 needs{VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
  TOSAIC_CHECK(called_void("vkGetTensorMemoryRequirementsARM",
                           [&] { device_->ml.GetTensorMemoryRequirementsARM(device_->handle, &which, &needs); }));
  made.needs = needs.memoryRequirements;
  return {};
}

Status Resources::allocate(Allocation& allocation, bool stage) {
  const auto shared = device_->memory_type(allocation.type_bits, on_host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                           allocation.output ? VK_MEMORY_PROPERTY_HOST_CACHED_BIT : 0);
  if (allocation.host() && shared && !stage) {
    TOSAIC_TRY(allocation.memory, device_->allocate(allocation.bytes, *shared, true));
    return {};
  }
  allocation.copied_bytes = allocation.bytes;
  if (allocation.host()) {  // a buffer over the same memory, as copies from staging memory need one
    TOSAIC_TRY(allocation.whole,
               make_buffer(allocation.bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT));
    VkMemoryRequirements needs;
    device_->vk.vkGetBufferMemoryRequirements(device_->handle, allocation.whole, &needs);
    allocation.bytes = std::max(allocation.bytes, needs.size);
    allocation.type_bits &= needs.memoryTypeBits;
  }
  const auto local = device_->memory_type(allocation.type_bits, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (!local)
    return error("vulkan.memory", "the device has no type of memory that suits all members of an alias group");
  TOSAIC_TRY(allocation.memory, device_->allocate(allocation.bytes, *local, false));
  if (!allocation.host()) return {};
  TOSAIC_CHECK(called("vkBindBufferMemory", [&] {
    return device_->vk.vkBindBufferMemory(device_->handle, allocation.whole, allocation.memory->handle(), 0);
  }));
  TOSAIC_TRY(allocation.staging_buffer,
             make_buffer(allocation.bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT));
  VkMemoryRequirements needs;
  device_->vk.vkGetBufferMemoryRequirements(device_->handle, allocation.staging_buffer, &needs);
  const auto host =
      device_->memory_type(needs.memoryTypeBits, on_host, allocation.output ? VK_MEMORY_PROPERTY_HOST_CACHED_BIT : 0);
  if (!host) return error("vulkan.memory", "the device has no memory that the host can write");
  TOSAIC_TRY(allocation.staging, device_->allocate(needs.size, *host, true));
  return called("vkBindBufferMemory", [&] {
    return device_->vk.vkBindBufferMemory(device_->handle, allocation.staging_buffer, allocation.staging->handle(), 0);
  });
}

Status Resources::bind(std::uint32_t resource, const Allocation& allocation) {
  Made& made = made_[resource];
  if (made.buffer != VK_NULL_HANDLE)
    return called("vkBindBufferMemory", [&] {
      return device_->vk.vkBindBufferMemory(device_->handle, made.buffer, allocation.memory->handle(), 0);
    });
  VkBindTensorMemoryInfoARM info{stype::bind_tensor};
  info.tensor = made.tensor;
  info.memory = allocation.memory->handle();
  TOSAIC_CHECK(
      called("vkBindTensorMemoryARM", [&] { return device_->ml.BindTensorMemoryARM(device_->handle, 1, &info); }));
  VkTensorViewCreateInfoARM view{stype::tensor_view};
  view.tensor = made.tensor;
  view.format = made.description->description.format;
  TOSAIC_CHECK(called("vkCreateTensorViewARM",
                      [&] { return device_->ml.CreateTensorViewARM(device_->handle, &view, nullptr, &made.view); }));
  undo_.later([this, made_view = made.view] { device_->ml.DestroyTensorViewARM(device_->handle, made_view, nullptr); });
  return {};
}

Status Resources::make(const Options& options) {
  join(options);
  std::map<std::uint32_t, VkFlags64> usage;  // of the resources that are needed
  for (const vgf::Segment& segment : file_.segments)
    for (const vgf::DescriptorSet& set : segment.sets)
      for (const vgf::Slot& slot : set.slots)
        usage[slot.resource] |=
            segment.kind == vgf::Kind::graph ? VK_TENSOR_USAGE_DATA_GRAPH_BIT_ARM : VK_TENSOR_USAGE_SHADER_BIT_ARM;
  for (const vgf::Slot& slot : file_.inputs) usage.try_emplace(slot.resource, VK_TENSOR_USAGE_DATA_GRAPH_BIT_ARM);
  for (const vgf::Slot& slot : file_.outputs) usage.try_emplace(slot.resource, VK_TENSOR_USAGE_DATA_GRAPH_BIT_ARM);
  for (const auto& [resource, flags] : usage) {
    TOSAIC_CHECK(check(resource));
    TOSAIC_CHECK(create(resource, flags));
    Allocation& allocation = allocations_[root(resource)];
    allocation.bytes = std::max(allocation.bytes, made_[resource].needs.size);
    allocation.type_bits &= made_[resource].needs.memoryTypeBits;
    allocation.constant |= file_.resources[resource].category == vgf::Category::constant;
  }
  for (const vgf::Slot& slot : file_.inputs) allocations_[root(slot.resource)].input = true;
  for (const vgf::Slot& slot : file_.outputs) allocations_[root(slot.resource)].output = true;
  for (auto& [r, allocation] : allocations_) TOSAIC_CHECK(allocate(allocation, options.stage));
  for (const auto& [resource, flags] : usage) TOSAIC_CHECK(bind(resource, allocations_[root(resource)]));
  return write_constants();
}

std::byte* Resources::mapped(std::uint32_t resource) const {
  const Allocation& allocation = allocations_.at(root(resource));
  return allocation.staging ? allocation.staging->mapped() : allocation.memory->mapped();
}

Status Resources::write_constants() const {
  for (std::size_t i = 0; i < file_.constants.size(); ++i) {
    const vgf::Constant& c = file_.constants[i];
    if (!made_.contains(c.resource)) continue;  // graphs take theirs when their pipelines are made
    TOSAIC_TRY(const TensorType type, vgf::type_of(file_, c.resource));
    if (c.data.size() != type.storage_bytes())
      return error("vgf.corrupt",
                   fmt::format("constant {} has {} bytes, its resource {}", i, c.data.size(), type.storage_bytes()));
    std::memcpy(mapped(c.resource), c.data.data(), c.data.size());
  }
  return {};
}

void Resources::copy(VkCommandBuffer commands, const Allocation& allocation, bool in) const {
  const VkBufferCopy all{0, 0, allocation.copied_bytes};
  device_->vk.vkCmdCopyBuffer(commands, in ? allocation.staging_buffer : allocation.whole,
                              in ? allocation.whole : allocation.staging_buffer, 1, &all);
}

bool Resources::record_constants(VkCommandBuffer commands) const {
  bool any = false;
  for (const auto& [r, allocation] : allocations_)
    if (allocation.constant && allocation.staging) copy(commands, allocation, true), any = true;
  return any;
}

void Resources::record_inputs(VkCommandBuffer commands) const {
  for (const auto& [r, allocation] : allocations_)
    if (allocation.input && allocation.staging) copy(commands, allocation, true);
}

void Resources::record_outputs(VkCommandBuffer commands) const {
  for (const auto& [r, allocation] : allocations_)
    if (allocation.output && allocation.staging) copy(commands, allocation, false);
}

}  // namespace tosaic::vulkan
