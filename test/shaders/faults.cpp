// SPDX-License-Identifier: Apache-2.0
// What is said when a device fails, and what is left of a model that is gone.
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "shaders/faulty_device.h"

namespace tosaic::test {
namespace {

using Faults = OnFaultyDevice;

vulkan_program::Program two_steps() {
  auto graph = parse(R"(graph @main(%a: 4x100xf32) -> (%s, %m) {
    %s: 4x1xf32 = tosa.reduce_sum(%a) {axis=1}
    %m: 4x100xf32 = tosa.sub(%a, %s)
  })");
  return compiled(*graph, every_tier());
}

Status run(vulkan::ComputeModel& model) {
  std::vector<std::vector<float>> in, out;
  for (const auto& t : model.inputs()) in.emplace_back(t.type.shape.elements(), 1.0f);
  for (const auto& t : model.outputs()) out.emplace_back(t.type.shape.elements());
  std::vector<const void*> from;
  std::vector<void*> to;
  for (auto& v : in) from.push_back(v.data());
  for (auto& v : out) to.push_back(v.data());
  return model.run(from, to);
}

bool has_note(const Diagnostic& d, const std::string& text) {
  return std::ranges::any_of(d.notes, [&](const std::string& n) { return n.find(text) != std::string::npos; });
}

VkResult no_memory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*, VkDeviceMemory*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

TEST_F(Faults, NoMemorySaysWhatTheProgramTakes) {
  device->vk.vkAllocateMemory = no_memory;
  EXPECT_EQ(code_of(two_steps()), "vulkan.memory");
  EXPECT_TRUE(has_note(said, "for activations and 3840 for inputs and outputs")) << render(said, false);
  device->vk = kept;
  auto model = vulkan::ComputeModel::load(two_steps());
  ASSERT_TRUE(model.ok());
  device->vk.vkAllocateMemory = no_memory;
  const auto clone = model->clone();
  ASSERT_FALSE(clone.ok());
  EXPECT_TRUE(has_note(clone.error(), "for activations")) << render(clone.error(), false);
  device->vk = kept;
  EXPECT_TRUE(run(*model).ok());
}

VkResult lost_submit(VkQueue, std::uint32_t, const VkSubmitInfo*, VkFence) { return VK_ERROR_DEVICE_LOST; }
PFN_vkWaitForFences real_wait = nullptr;
VkResult lost_wait(VkDevice d, std::uint32_t n, const VkFence* f, VkBool32 all, std::uint64_t most) {
  const VkResult result = real_wait(d, n, f, all, most);
  return result == VK_SUCCESS ? VK_ERROR_DEVICE_LOST : result;
}

TEST_F(Faults, ALostDeviceIsOpenedAnew) {
  real_wait = kept.vkWaitForFences;
  for (const bool timed : {false, true}) {
    auto model = vulkan::ComputeModel::load(two_steps());
    ASSERT_TRUE(model.ok()) << render(model.error(), false);
    ASSERT_TRUE(model->measure(timed).ok());
    auto now = vulkan::Device::open("", vulkan::Use::compute);
    ASSERT_TRUE(now.ok());
    (*now)->vk.vkQueueSubmit = lost_submit;
    const Status ran = run(*model);
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.error().code, "vulkan.lost");
    if (timed)
      EXPECT_TRUE(has_note(ran.error(), "dispatch 0, reduce_sum for 's' did not end")) << render(ran.error(), false);
    else
      EXPECT_TRUE(has_note(ran.error(), "2 dispatches, the first is dispatch 0, reduce_sum for 's'"));
    // The next one runs, on a device of its own.
    auto next = vulkan::ComputeModel::load(two_steps());
    ASSERT_TRUE(next.ok()) << render(next.error(), false);
    EXPECT_TRUE(run(*next).ok());
    auto other = vulkan::Device::open("", vulkan::Use::compute);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->get(), now->get());
  }
  // Lost while the shaders are checked, after all of them have ended.
  auto last = vulkan::Device::open("", vulkan::Use::compute);
  (*last)->vk.vkWaitForFences = lost_wait;
  EXPECT_EQ(code_of(two_steps()), "vulkan.lost");
  EXPECT_TRUE(has_note(said, "it was checking its shaders of reduce_sum ('s'), elementwise ('m')"))
      << render(said, false);
  EXPECT_EQ(code_of(two_steps()), "loaded");
}

// Devices that lack something, or take less: each is opened after the one before was lost.
PFN_vkGetPhysicalDeviceProperties real_properties = nullptr;
void (*weaken)(VkPhysicalDeviceLimits&) = nullptr;
void weak_properties(VkPhysicalDevice d, VkPhysicalDeviceProperties* p) {
  real_properties(d, p);
  weaken(p->limits);
}

void lose_the_device() {
  auto now = vulkan::Device::open("", vulkan::Use::compute);
  ASSERT_TRUE(now.ok());
  auto model = vulkan::ComputeModel::load(two_steps());
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  (*now)->vk.vkQueueSubmit = lost_submit;
  EXPECT_FALSE(run(*model).ok());
}

TEST_F(Faults, LimitsAreCheckedBeforeTheyAreMet) {
  real_properties = vkGetPhysicalDeviceProperties;
  const std::pair<void (*)(VkPhysicalDeviceLimits&), const char*> weaknesses[] = {
      {[](auto& l) { l.maxStorageBufferRange = 1024; }, "bytes in one buffer"},
      {[](auto& l) { l.maxPerStageDescriptorStorageBuffers = 1; }, "buffers"},
      {[](auto& l) { l.maxComputeWorkGroupInvocations = 16; }, "invocations in a group"},
      {[](auto& l) { l.maxPushConstantsSize = 4; }, "bytes of push constants"},
      {[](auto& l) { l.maxComputeWorkGroupCount[0] = 0; }, "groups along an axis"}};
  for (const auto& [make, what] : weaknesses) {
    lose_the_device();
    weaken = make;
    vkGetPhysicalDeviceProperties = weak_properties;
    EXPECT_EQ(code_of(two_steps()), "vulkan.limit") << what;
    EXPECT_NE(said.message.find(what), std::string::npos) << said.message;
    EXPECT_NE(said.message.find("reduce_sum"), std::string::npos) << said.message;
    vkGetPhysicalDeviceProperties = real_properties;
    weaken = [](auto&) {};
    // Whoever opened it keeps the weak one: it must go as well.
    auto weak = vulkan::Device::open("", vulkan::Use::compute);
    ASSERT_TRUE(weak.ok());
    (*weak)->forget();
  }
}

TEST_F(Faults, WhatTheDeviceLacksIsNamed) {
  auto graph = parse("graph @main(%a: 100xi8) -> (%n) { %n: 100xi8 = tosa.bitwise_not(%a) }");
  auto& traits = const_cast<vulkan::DeviceInfo&>(device->info()).traits;
  traits.storage_8 = false;
  constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};
  EXPECT_EQ(code_of(compiled(*graph, base)), "vulkan.feature");
  EXPECT_NE(said.message.find("8-bit storage buffers, which i8 and bool tensors need"), std::string::npos)
      << said.message;
  EXPECT_EQ(code_of(two_steps()), "loaded");  // of f32 alone
  traits.storage_8 = true;
}

TEST_F(Faults, TooLargeForTheDevicesMemory) {
  static PFN_vkGetPhysicalDeviceMemoryProperties real_memory;
  real_memory = vkGetPhysicalDeviceMemoryProperties;
  vkGetPhysicalDeviceMemoryProperties = [](VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties* p) {
    real_memory(d, p);
    for (auto& heap : p->memoryHeaps) heap.size = 1024;
  };
  device->forget();
  EXPECT_EQ(code_of(two_steps()), "vulkan.memory");
  EXPECT_NE(said.message.find("bytes in one block of the 1024 that"), std::string::npos) << said.message;
  vkGetPhysicalDeviceMemoryProperties = real_memory;
  auto small = vulkan::Device::open("", vulkan::Use::compute);
  ASSERT_TRUE(small.ok());
  (*small)->forget();
}

// ---- nothing is left

VolkDeviceTable real;
std::mutex counting;  // pipelines and their modules are made by several threads
std::set<std::uint64_t> alive;
std::map<std::string, int> ever;  // how many of a kind
template <class Handle>
void made(const char* kind, VkResult result, Handle* handle) {
  const std::lock_guard lock(counting);
  if (result != VK_SUCCESS) return;
  ++ever[kind];
  alive.insert(reinterpret_cast<std::uint64_t>(*handle));
}
template <class Handle>
void gone(Handle handle) {
  const std::lock_guard lock(counting);
  if (handle != VK_NULL_HANDLE) { EXPECT_EQ(alive.erase(reinterpret_cast<std::uint64_t>(handle)), 1u); }
}
#define COUNTED(Create, Destroy, Info, Handle)                                                       \
  device->vk.vk##Create = [](VkDevice d, const Info* i, const VkAllocationCallbacks* a, Handle* h) { \
    const VkResult result = real.vk##Create(d, i, a, h);                                             \
    made(#Create, result, h);                                                                        \
    return result;                                                                                   \
  };                                                                                                 \
  device->vk.vk##Destroy = [](VkDevice d, Handle h, const VkAllocationCallbacks* a) {                \
    gone(h);                                                                                         \
    real.vk##Destroy(d, h, a);                                                                       \
  }

void count_all(const std::shared_ptr<vulkan::Device>& device) {
  COUNTED(AllocateMemory, FreeMemory, VkMemoryAllocateInfo, VkDeviceMemory);
  COUNTED(CreateBuffer, DestroyBuffer, VkBufferCreateInfo, VkBuffer);
  COUNTED(CreateShaderModule, DestroyShaderModule, VkShaderModuleCreateInfo, VkShaderModule);
  COUNTED(CreateDescriptorSetLayout, DestroyDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo,
          VkDescriptorSetLayout);
  COUNTED(CreatePipelineLayout, DestroyPipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout);
  COUNTED(CreateDescriptorPool, DestroyDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool);
  COUNTED(CreateCommandPool, DestroyCommandPool, VkCommandPoolCreateInfo, VkCommandPool);
  COUNTED(CreateQueryPool, DestroyQueryPool, VkQueryPoolCreateInfo, VkQueryPool);
  COUNTED(CreateFence, DestroyFence, VkFenceCreateInfo, VkFence);
  COUNTED(CreateBufferView, DestroyBufferView, VkBufferViewCreateInfo, VkBufferView);
  device->vk.vkCreateComputePipelines = [](VkDevice d, VkPipelineCache cache, std::uint32_t count,
                                           const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* by,
                                           VkPipeline* pipelines) {
    const VkResult result = real.vkCreateComputePipelines(d, cache, count, infos, by, pipelines);
    for (std::uint32_t i = 0; i < count; ++i) made("ComputePipelines", result, pipelines + i);
    return result;
  };
  device->vk.vkDestroyPipeline = [](VkDevice d, VkPipeline pipeline, const VkAllocationCallbacks* by) {
    gone(pipeline);
    real.vkDestroyPipeline(d, pipeline, by);
  };
}

// The same with an input of any length.
vulkan_program::Program sized_steps() {
  auto graph = parse(R"(graph @main(%a: 4x(n in 1..100)xf32) -> (%s, %m) {
    %s: 4x1xf32 = tosa.reduce_sum(%a) {axis=1}
    %m: 4x(n in 1..100)xf32 = tosa.sub(%a, %s)
  })");
  return compiled(*graph, every_tier());
}

// As they are at the bounds, whatever the sizes.
Status run_sized(vulkan::ComputeModel& model, std::int64_t length) {
  TOSAIC_CHECK(model.resize(std::vector{Shape{4, length}}));
  std::vector<float> in(400, 1), sums(4), differences(400);
  const void* from[] = {in.data()};
  void* to[] = {sums.data(), differences.data()};
  TOSAIC_CHECK(model.run(from, to));
  EXPECT_EQ(sums[3], static_cast<float>(length));
  return {};
}

TEST_F(Faults, UnloadingGivesEverythingBack) {
  real = kept;
  count_all(device);
  alive.clear();
  ever.clear();
  for (const bool sized : {false, true}) {
    const auto use = [&](vulkan::ComputeModel& model) -> Status {
      if (!sized) return run(model);
      for (std::int64_t length : {1, 60, 100, 7}) TOSAIC_CHECK(run_sized(model, length));
      return Status();
    };
    std::size_t usual_count = 0;
    for (int again = 0; again < 3; ++again) {
      auto model = vulkan::ComputeModel::load(sized ? sized_steps() : two_steps());
      ASSERT_TRUE(model.ok()) << render(model.error(), false);
      auto clone = model->clone();
      ASSERT_TRUE(clone.ok() && use(*model).ok() && use(*clone).ok());
      EXPECT_GT(alive.size(), 10u);
      EXPECT_EQ(again == 0 ? (usual_count = alive.size()) : alive.size(), usual_count);
      { const auto first = std::move(*model); }  // the clone lives on
      EXPECT_TRUE(use(*clone).ok());
    }
    EXPECT_TRUE(alive.empty()) << alive.size() << " objects are left";
  }
  for (const char* kind :
       {"AllocateMemory", "CreateBuffer", "CreateShaderModule", "CreateDescriptorSetLayout", "CreatePipelineLayout",
        "CreateDescriptorPool", "CreateCommandPool", "CreateQueryPool", "CreateFence", "ComputePipelines"})
    EXPECT_GT(ever[kind], 0) << kind;
  if (is_cpu()) { EXPECT_GT(ever["CreateBufferView"], 0); }
  // Nor where a load fails half way, wherever that is.
  const auto no_views = [](VkDevice, const VkBufferViewCreateInfo*, const VkAllocationCallbacks*, VkBufferView*) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  };
  device->vk.vkCreateBufferView = no_views;
  if (is_cpu()) { EXPECT_EQ(code_of(two_steps()), "vulkan.memory"); }
  EXPECT_TRUE(alive.empty()) << alive.size() << " objects are left";
  device->vk = kept;
  count_all(device);
  device->vk.vkCreateComputePipelines = [](VkDevice, VkPipelineCache, std::uint32_t, const VkComputePipelineCreateInfo*,
                                           const VkAllocationCallbacks*,
                                           VkPipeline*) { return VK_ERROR_OUT_OF_DEVICE_MEMORY; };
  EXPECT_EQ(code_of(two_steps()), "vulkan.memory");
  EXPECT_TRUE(alive.empty()) << alive.size() << " objects are left";
  device->vk = kept;
  count_all(device);
  device->vk.vkCreateQueryPool = [](VkDevice, const VkQueryPoolCreateInfo*, const VkAllocationCallbacks*,
                                    VkQueryPool*) { return VK_ERROR_OUT_OF_HOST_MEMORY; };
  EXPECT_EQ(code_of(two_steps()), "vulkan.memory");
  EXPECT_TRUE(alive.empty()) << alive.size() << " objects are left";
}

}  // namespace
}  // namespace tosaic::test
