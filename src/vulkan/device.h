// SPDX-License-Identifier: Apache-2.0
// An opened Vulkan device, with the ML extensions or for compute shaders: its functions, its one queue, its memory. All
// models and threads of a process share it.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/rope.h"
#include "vulkan/drivers.h"
#include "vulkan/ml_extensions.h"

namespace tosaic::vulkan {

// Device memory; mapped as long as it lives, where the host sees it.
class Memory {
 public:
  Memory(const class Device& device, VkDeviceMemory handle, VkDeviceSize bytes, std::uint32_t type, std::byte* mapped)
      : device_(device), handle_(handle), bytes_(bytes), type_(type), mapped_(mapped) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  VkDeviceMemory handle() const { return handle_; }
  VkDeviceSize bytes() const { return bytes_; }
  std::uint32_t type() const { return type_; }
  std::byte* mapped() const { return mapped_; }

 private:
  const Device& device_;
  const VkDeviceMemory handle_;
  const VkDeviceSize bytes_;
  const std::uint32_t type_;
  std::byte* const mapped_;
};

// Constants of the models that are loaded, by what they hold.
struct UploadedConstants {
  struct ConstantRange {
    std::weak_ptr<class DeviceBuffer> buffer;
    std::uint64_t offset = 0;
  };
  UploadedConstants();
  std::map<Digest, ConstantRange> known_ranges;
  std::uint64_t seed;  // of the digests: random, so that no file shares its weights with another one by intent
};

// Of the file that keeps a driver's pipelines. It is read whole before anything runs. A test lowers it.
inline std::size_t most_cache_bytes = std::size_t{128} << 20;

class Device {
 public:
  // The device that `wanted` chooses (see choose()), opened on first use and open until the process ends, see
  // close_at_exit; a lost one is opened anew. Errors: those of choose() and open_driver(), vulkan.feature,
  // vulkan.memory, vulkan.failed.
  static Result<std::shared_ptr<Device>> open(const std::string& wanted, Use use = Use::data_graphs);
  // The devices of this machine, without the emulation layer. Errors: those of open_driver().
  static Result<std::vector<DeviceInfo>> list();

  const DeviceInfo& info() const { return info_; }
  // "llvmpipe (LLVM 15.0.6, 256 bits) (emulation layer)"
  std::string description() const;
  bool runs_shaders() const { return runs_shaders_; }
  std::uint32_t most_dims() const { return limits_.maxTensorDimensionCount; }
  std::uint64_t most_tensor_bytes() const { return limits_.maxTensorSize; }
  const VkPhysicalDeviceLimits& limits() const { return core_limits_; }
  const vulkan_program::DeviceTraits& traits() const { return info_.traits; }
  std::string driver() const { return "driver " + info_.driver_version; }
  double nanoseconds_per_tick() const { return nanoseconds_per_tick_; }  // 0: the queue has no timestamps
  bool host_resets_queries() const { return host_resets_queries_; }      // of a device for shaders

  // Memory of one of the types in `type_bits` that has all of `needed` and, where there is one, all of `liked`.
  std::optional<std::uint32_t> memory_type(std::uint32_t type_bits, VkMemoryPropertyFlags needed,
                                           VkMemoryPropertyFlags liked) const;
  VkMemoryPropertyFlags memory_flags(std::uint32_t type) const { return memory_.memoryTypes[type].propertyFlags; }
  Result<std::shared_ptr<Memory>> allocate(VkDeviceSize bytes, std::uint32_t type, bool mapped) const;
  // Memory for what lives within one submission. Everything in the queue uses the same: submissions are ordered by the
  // barrier with which each of them begins.
  Result<std::shared_ptr<Memory>> transient(VkDeviceSize bytes, std::uint32_t type_bits);

  // Runs the commands and waits: looks for `spin_seconds` whether it is done before it blocks, as waking up takes
  // longer than small models. Errors: vulkan.lost, vulkan.memory, vulkan.failed.
  Status run(VkCommandBuffer commands, VkFence fence, double spin_seconds);
  Status submit(VkCommandBuffer commands, VkFence fence);
  Status wait(VkFence fence, double spin_seconds);  // for what was submitted with it

  void forget();  // it was lost: the next open() makes a new one
  // What came of calls, as it is; a loss may show in any of them.
  template <class Outcome>
  Outcome noticed(Outcome outcome) {
    if (!outcome.ok() && outcome.error().code == "vulkan.lost") forget();
    return outcome;
  }

  VkDevice handle = VK_NULL_HANDLE;
  VolkDeviceTable vk{};
  MlFunctions ml{};
  std::uint32_t queue_family = 0;
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
  std::mutex building;  // held while a model is made: not every layer takes calls from several threads
  // Writes the pipeline cache to disk where it has grown. Failure to do so is no error. Under `building`.
  void save_pipeline_cache();
  // A file next to the pipeline cache, of this device and driver; empty: there is no folder for one.
  std::string cache_file(std::string_view what) const {
    return cache_file_.empty() ? "" : cache_file_ + std::string(what);
  }
  std::set<std::uint64_t> checked;  // modules that this driver runs as they say, by their hash. Under `building`
  UploadedConstants uploaded;       // likewise

 private:
  static std::shared_ptr<Device> lent(std::shared_ptr<Device> device);
  static void close_at_exit();
  static void close_all();
  bool is_cpu() const { return info_.type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  Status start(VkPhysicalDevice physical);
  Status start_for_graphs(VkPhysicalDevice physical);
  Status start_for_compute(VkPhysicalDevice physical);
  Status create(VkPhysicalDevice physical, const void* features, const std::vector<const char*>& extensions);
  void open_pipeline_cache(const VkPhysicalDeviceProperties& properties);

  DeviceInfo info_;
  Use use_ = Use::data_graphs;
  VkPhysicalDeviceLimits core_limits_{};
  VkPhysicalDeviceTensorPropertiesARM limits_{stype::tensor_properties};
  VkPhysicalDeviceMemoryProperties memory_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_guard_;
  std::atomic<bool> has_run_ = false;
  double nanoseconds_per_tick_ = 0;
  bool runs_shaders_ = false, has_addresses_ = false, host_resets_queries_ = false;
  std::weak_ptr<Memory> transient_;
  std::string cache_file_;  // empty: none
  std::size_t cached_bytes_ = 0;
};

}  // namespace tosaic::vulkan
