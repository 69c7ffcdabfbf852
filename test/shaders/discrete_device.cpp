// SPDX-License-Identifier: Apache-2.0
#include "shaders/discrete_device.h"

#include <algorithm>
#include <span>

namespace tosaic::test {
namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags flags_of[type_count] = {local, host, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                                        local | host};
constexpr std::byte unwritten{0xcd};

// What the host has written since the last submission, word by word: the device may have written the others.
void send(DiscreteDevice::Piece& piece) {
  constexpr std::size_t word = 4;
  for (std::size_t at = 0; at < piece.hosts.size(); at += word) {
    const std::span<std::byte> hosts = std::span(piece.hosts).subspan(at, std::min(word, piece.hosts.size() - at));
    if (std::ranges::all_of(hosts, [](std::byte b) { return b == unwritten; })) continue;
    std::ranges::copy(hosts, piece.real + at);
    std::ranges::fill(hosts, unwritten);
  }
}

PFN_vkGetPhysicalDeviceMemoryProperties real_memory = nullptr;
std::uint32_t types = type_count;
std::mutex guard;

void memory_of(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties* found) {
  real_memory(physical, found);
  const VkDeviceSize bytes = found->memoryHeaps[0].size;
  found->memoryHeapCount = 2;
  found->memoryHeaps[0] = {bytes, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  found->memoryHeaps[1] = {bytes, 0};
  found->memoryTypeCount = types;
  for (std::uint32_t i = 0; i < types; ++i) found->memoryTypes[i] = {flags_of[i], flags_of[i] & local ? 0u : 1u};
}

}  // namespace

DiscreteDevice OnDiscreteDevice::gpu;

void OnDiscreteDevice::SetUp() {
  OnFaultyDevice::SetUp();
  if (device && !is_cpu()) GTEST_SKIP() << for_cpu_devices;
  if (device) real_memory = vkGetPhysicalDeviceMemoryProperties;
}

void OnDiscreteDevice::TearDown() {
  if (made) made->forget();
  OnFaultyDevice::TearDown();
}

void OnDiscreteDevice::open(bool has_both) {
  (made ? made : device)->forget();
  types = has_both ? type_count : both;
  vkGetPhysicalDeviceMemoryProperties = memory_of;
  auto opened = vulkan::Device::open("", vulkan::Use::compute);
  vkGetPhysicalDeviceMemoryProperties = real_memory;
  ASSERT_TRUE(opened.ok()) << render(opened.error(), false);
  made = *opened;
  auto& info = const_cast<vulkan::DeviceInfo&>(made->info());
  info.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  info.traits.is_cpu = false;
  gpu = {};
  gpu.real = made->vk;
  auto& vk = made->vk;
  vk.vkGetBufferMemoryRequirements = [](VkDevice d, VkBuffer b, VkMemoryRequirements* needs) {
    gpu.real.vkGetBufferMemoryRequirements(d, b, needs);
    needs->memoryTypeBits = (1u << types) - 1;
  };
  vk.vkAllocateMemory = [](VkDevice d, const VkMemoryAllocateInfo* asked, const VkAllocationCallbacks* by,
                           VkDeviceMemory* memory) {
    const std::lock_guard lock(guard);
    const auto type = static_cast<MemoryType>(asked->memoryTypeIndex);
    EXPECT_LT(type, types);
    if (type == both && gpu.taken[both] + asked->allocationSize > gpu.room_in_both)
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateInfo mine = *asked;
    mine.memoryTypeIndex = 0;  // the only one that lavapipe has
    const VkResult result = gpu.real.vkAllocateMemory(d, &mine, by, memory);
    if (result != VK_SUCCESS) return result;
    gpu.pieces[*memory] = {type, asked->allocationSize, nullptr, {}};
    gpu.taken[type] += asked->allocationSize;
    gpu.most_taken[type] = std::max(gpu.most_taken[type], gpu.taken[type]);
    return result;
  };
  vk.vkFreeMemory = [](VkDevice d, VkDeviceMemory memory, const VkAllocationCallbacks* by) {
    const std::lock_guard lock(guard);
    if (const auto piece = gpu.pieces.find(memory); piece != gpu.pieces.end()) {
      gpu.taken[piece->second.type] -= piece->second.bytes;
      gpu.pieces.erase(piece);
    }
    gpu.real.vkFreeMemory(d, memory, by);
  };
  vk.vkMapMemory = [](VkDevice d, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize bytes, VkMemoryMapFlags how,
                      void** at) {
    const std::lock_guard lock(guard);
    auto& piece = gpu.pieces.at(memory);
    EXPECT_TRUE(flags_of[piece.type] & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
    gpu.mapped.insert(piece.type);
    const VkResult result = gpu.real.vkMapMemory(d, memory, offset, bytes, how, at);
    if (result != VK_SUCCESS || piece.type == cached) return result;
    piece.real = static_cast<std::byte*>(*at);
    piece.hosts.assign(piece.bytes, unwritten);
    *at = piece.hosts.data();
    return result;
  };
  vk.vkBindBufferMemory = [](VkDevice d, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset) {
    const std::lock_guard lock(guard);
    gpu.buffers[buffer] = gpu.pieces.at(memory).type;
    return gpu.real.vkBindBufferMemory(d, buffer, memory, offset);
  };
  vk.vkCmdCopyBuffer = [](VkCommandBuffer commands, VkBuffer from, VkBuffer to, std::uint32_t count,
                          const VkBufferCopy* what) {
    const std::lock_guard lock(guard);
    for (std::uint32_t i = 0; i < count; ++i)
      gpu.copies.push_back({gpu.buffers.at(from), gpu.buffers.at(to), what[i].size});
    gpu.real.vkCmdCopyBuffer(commands, from, to, count, what);
  };
  vk.vkQueueSubmit = [](VkQueue queue, std::uint32_t count, const VkSubmitInfo* what, VkFence fence) {
    const std::lock_guard lock(guard);
    for (auto& [memory, piece] : gpu.pieces) send(piece);
    return gpu.real.vkQueueSubmit(queue, count, what, fence);
  };
  vk.vkGetFenceStatus = [](VkDevice d, VkFence fence) {
    ++gpu.looks;
    return gpu.busy ? VK_NOT_READY : gpu.real.vkGetFenceStatus(d, fence);
  };
  vk.vkWaitForFences = [](VkDevice d, std::uint32_t count, const VkFence* fences, VkBool32 all, std::uint64_t most) {
    ++gpu.waits;
    return gpu.real.vkWaitForFences(d, count, fences, all, most);
  };
}

}  // namespace tosaic::test
