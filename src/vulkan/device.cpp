// SPDX-License-Identifier: Apache-2.0
#include "vulkan/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>

#include "base/system/clock.h"
#include "base/system/environment.h"
#include "base/system/libraries.h"
#include "vulkan/call.h"
#include "vulkan/compute_features.h"
#include "vulkan/features.h"
#include "vulkan/mesa_cache.h"

namespace tosaic::vulkan {
namespace {

// What the process has opened. Reachable for ever and never destroyed, see open_driver and close_at_exit.
struct Opened {
  std::mutex guard;
  int process = 0;
  bool lost_one = false;  // a device that is forgotten, and still its instance's
  std::optional<Driver> plain, emulated;
  std::map<std::pair<VkPhysicalDevice, Use>, std::shared_ptr<Device>> devices;
};
Opened& opened() {
  static Opened* const all = new Opened;
  return *all;
}

template <class Function>
bool load(VkDevice device, PFN_vkGetDeviceProcAddr address_of, const char* name, Function& function) {
  function = reinterpret_cast<Function>(address_of(device, name));
  return function != nullptr;
}

bool load(VkDevice device, PFN_vkGetDeviceProcAddr address_of, MlFunctions& ml) {
  const auto get = [&](const char* name, auto& function) { return load(device, address_of, name, function); };
  return get("vkCreateTensorARM", ml.CreateTensorARM) && get("vkDestroyTensorARM", ml.DestroyTensorARM) &&
         get("vkCreateTensorViewARM", ml.CreateTensorViewARM) &&
         get("vkDestroyTensorViewARM", ml.DestroyTensorViewARM) &&
         get("vkGetTensorMemoryRequirementsARM", ml.GetTensorMemoryRequirementsARM) &&
         get("vkBindTensorMemoryARM", ml.BindTensorMemoryARM) &&
         get("vkCreateDataGraphPipelinesARM", ml.CreateDataGraphPipelinesARM) &&
         get("vkCreateDataGraphPipelineSessionARM", ml.CreateDataGraphPipelineSessionARM) &&
         get("vkGetDataGraphPipelineSessionBindPointRequirementsARM",
             ml.GetDataGraphPipelineSessionBindPointRequirementsARM) &&
         get("vkGetDataGraphPipelineSessionMemoryRequirementsARM",
             ml.GetDataGraphPipelineSessionMemoryRequirementsARM) &&
         get("vkBindDataGraphPipelineSessionMemoryARM", ml.BindDataGraphPipelineSessionMemoryARM) &&
         get("vkDestroyDataGraphPipelineSessionARM", ml.DestroyDataGraphPipelineSessionARM) &&
         get("vkCmdDispatchDataGraphARM", ml.CmdDispatchDataGraphARM);
}

// The driver whose own device will do, or the emulation layer's.
Result<std::pair<Driver*, std::size_t>> find(const std::string& wanted, Use use) {
  Opened& all = opened();
  all.process = process_number();
  if (!all.plain) { TOSAIC_TRY(all.plain, open_driver(false)); }
  const auto own = choose(all.plain->devices, wanted, use);
  if (own.ok()) return std::pair(&*all.plain, *own);
  if (own.error().code != "vulkan.no-extension") return own.error();
  if (!all.emulated) { TOSAIC_TRY(all.emulated, open_driver(true)); }
  TOSAIC_TRY(const std::size_t index, choose(all.emulated->devices, wanted));
  return std::pair(&*all.emulated, index);
}

}  // namespace

UploadedConstants::UploadedConstants() {
  std::random_device random;
  seed = std::uint64_t{random()} << 32 | random();
}

Memory::~Memory() { device_.vk.vkFreeMemory(device_.handle, handle_, nullptr); }  // unmaps it as well

Result<std::vector<DeviceInfo>> Device::list() {
  Opened& all = opened();
  const std::lock_guard lock(all.guard);
  const MesaCache cache;
  if (!all.plain) { TOSAIC_TRY(all.plain, open_driver(false)); }
  return all.plain->devices;
}

Result<std::shared_ptr<Device>> Device::open(const std::string& wanted, Use use) {
  Opened& all = opened();
  const std::lock_guard lock(all.guard);
  const MesaCache cache;
  TOSAIC_TRY(const auto found, find(wanted, use));
  const auto& [driver, index] = found;
  std::shared_ptr<Device>& device = all.devices[{driver->handles[index], use}];
  if (!device) {
    auto made = std::make_shared<Device>();
    made->info_ = driver->devices[index];
    made->use_ = use;
    TOSAIC_CHECK(made->start(driver->handles[index]));
    device = std::move(made);
  }
  return lent(device);
}

// Lavapipe keeps shaders in a cache of its own, which a thread of it writes; what is still to be written when the
// process ends is lost, unless the instance is destroyed, which waits for it. (Other drivers' shaders are in our
// cache.) That has to be before anything that the driver destroys at exit, so it is asked for when a model goes that
// has run: behind all that the driver has registered by then. Devices that are in use at exit, of a static session,
// stay open.
std::shared_ptr<Device> Device::lent(std::shared_ptr<Device> device) {
  Device* const handed = device.get();
  return {handed, [held = std::move(device)](Device*) mutable {
            static std::once_flag asked;
            if (held->is_cpu() && held->has_run_) std::call_once(asked, [] { std::atexit(close_at_exit); });
            held.reset();
          }};
}

// What is thrown at exit ends the process badly; without memory for it, nothing is closed.
void Device::close_at_exit() {
  try {
    close_all();
  } catch (const std::exception&) {}
}

void Device::close_all() {
  Opened& all = opened();
  const std::unique_lock lock(all.guard, std::try_to_lock);
  // A child of fork() has none of the threads that the driver would wait for.
  if (!lock.owns_lock() || all.process != process_number() || all.lost_one) return;
  for (std::optional<Driver>* driver : {&all.plain, &all.emulated}) {
    const auto is_of_it = [&](const auto& entry) {
      return entry.second && entry.second->info_.emulated == (driver == &all.emulated);
    };
    const bool closes = std::ranges::all_of(all.devices, [&](const auto& entry) {
      return !is_of_it(entry) || (entry.second->is_cpu() && entry.second.use_count() == 1);
    });
    if (!*driver || !closes) continue;
    std::erase_if(all.devices, [&](const auto& entry) {
      if (!is_of_it(entry)) return false;
      const Device& d = *entry.second;
      d.vk.vkDestroyPipelineCache(d.handle, d.pipeline_cache, nullptr);
      d.vk.vkDestroyDevice(d.handle, nullptr);
      return true;
    });
    keep_loaded_libraries();
    vkDestroyInstance((*driver)->instance, nullptr);
    driver->reset();
  }
}

void Device::forget() {
  Opened& all = opened();
  const std::lock_guard lock(all.guard);
  all.lost_one = true;
  std::erase_if(all.devices, [&](const auto& entry) { return entry.second.get() == this; });
}

std::string Device::description() const { return info_.name + (info_.emulated ? " (emulation layer)" : ""); }

Status Device::create(VkPhysicalDevice physical, const void* features, const std::vector<const char*>& extensions) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  TOSAIC_CHECK(called("vkCreateDevice", [&] { return vkCreateDevice(physical, &info, nullptr, &handle); }));
  volkLoadDeviceTable(&vk, handle);
  return {};
}

Status Device::start_for_graphs(VkPhysicalDevice physical) {
  const Features features(physical);
  TOSAIC_CHECK(features.check());
  has_addresses_ = features.buffer_addresses();
  queue_family = data_graph_family(physical);
  TOSAIC_CHECK(create(physical, &features.chain(), features.extensions()));
  if (!load(handle, vkGetDeviceProcAddr, ml))
    return error("vulkan.no-extension",
                 fmt::format("{} offers data graphs but not all of their functions", description()));
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  all.pNext = &limits_;
  vkGetPhysicalDeviceProperties2(physical, &all);
  return {};
}

Status Device::start_for_compute(VkPhysicalDevice physical) {
  queue_family = compute_family(physical);
  const ComputeFeatureChain chain(physical);
  TOSAIC_CHECK(create(physical, chain.head(), chain.extensions()));
  host_resets_queries_ = chain.host_resets_queries() && vk.vkResetQueryPoolEXT;
  return {};
}

Status Device::start(VkPhysicalDevice physical) {
  TOSAIC_CHECK(use_ == Use::compute ? start_for_compute(physical) : start_for_graphs(physical));
  vk.vkGetDeviceQueue(handle, queue_family, 0, &queue_);
  vkGetPhysicalDeviceMemoryProperties(physical, &memory_);
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(physical, &properties);
  core_limits_ = properties.limits;
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  runs_shaders_ = families[queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT;
  if (families[queue_family].timestampValidBits > 0)
    nanoseconds_per_tick_ = static_cast<double>(properties.limits.timestampPeriod);
  open_pipeline_cache(properties);
  return {};
}

std::optional<std::uint32_t> Device::memory_type(std::uint32_t type_bits, VkMemoryPropertyFlags needed,
                                                 VkMemoryPropertyFlags liked) const {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory_.memoryTypes[i].propertyFlags;
    if (!(type_bits >> i & 1) || (flags & needed) != needed) continue;
    if ((flags & liked) == liked) return i;
    if (!found) found = i;
  }
  return found;
}

Result<std::shared_ptr<Memory>> Device::allocate(VkDeviceSize bytes, std::uint32_t type, bool mapped) const {
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;  // the emulation layer addresses tensors
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.pNext = has_addresses_ ? &flags : nullptr;
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  const VkDeviceSize heap = memory_.memoryHeaps[memory_.memoryTypes[type].heapIndex].size;
  if (bytes > heap)
    return error("vulkan.memory", fmt::format("the model wants {} bytes in one block of the {} that {} has", bytes,
                                              heap, description()));
  VkDeviceMemory memory = VK_NULL_HANDLE;
  TOSAIC_CHECK(called("vkAllocateMemory", [&] { return vk.vkAllocateMemory(handle, &info, nullptr, &memory); }));
  void* at = nullptr;
  if (mapped)
    if (auto status = called("vkMapMemory", [&] { return vk.vkMapMemory(handle, memory, 0, VK_WHOLE_SIZE, 0, &at); });
        !status.ok()) {
      vk.vkFreeMemory(handle, memory, nullptr);
      return std::move(status).error();
    }
  return std::make_shared<Memory>(*this, memory, bytes, type, static_cast<std::byte*>(at));
}

Result<std::shared_ptr<Memory>> Device::transient(VkDeviceSize bytes, std::uint32_t type_bits) {
  if (auto now = transient_.lock(); now && now->bytes() >= bytes && (type_bits >> now->type() & 1)) return now;
  const auto type = memory_type(type_bits, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  if (!type) return error("vulkan.memory", "the device has no memory of a type that its data graphs take");
  TOSAIC_TRY(auto made, allocate(bytes, *type, false));
  transient_ = made;
  return made;
}

Status Device::run(VkCommandBuffer commands, VkFence fence, double spin_seconds) {
  TOSAIC_CHECK(submit(commands, fence));
  return wait(fence, spin_seconds);
}

Status Device::submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  has_run_ = true;
  return noticed(called("vkQueueSubmit", [&] {
    const std::lock_guard lock(queue_guard_);
    return vk.vkQueueSubmit(queue_, 1, &submit, fence);
  }));
}

Status Device::wait(VkFence fence, double spin_seconds) {
  using Clock = SteadyClock;
  Status status;
  bool done = false;
  for (const auto begin = Clock::now();
       status.ok() && !done && std::chrono::duration<double>(Clock::now() - begin).count() < spin_seconds;)
    status = called("vkGetFenceStatus", [&] {
      const VkResult result = vk.vkGetFenceStatus(handle, fence);
      done = result == VK_SUCCESS;
      return result;
    });
  if (status.ok() && !done)
    status = called("vkWaitForFences", [&] { return vk.vkWaitForFences(handle, 1, &fence, VK_TRUE, UINT64_MAX); });
  if (status.ok()) status = called("vkResetFences", [&] { return vk.vkResetFences(handle, 1, &fence); });
  return noticed(std::move(status));
}

}  // namespace tosaic::vulkan
