// SPDX-License-Identifier: Apache-2.0
// Which Vulkan devices there are and which one is taken.
#pragma once
#include <volk.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/spirv/compute/float_controls.h"
#include "formats/vulkan_program/tiers.h"

namespace tosaic::vulkan {

// What a device is opened for: VGF's graphs by the ML extensions, or compute shaders.
enum class Use : std::uint8_t { data_graphs, compute };

std::uint32_t least_version(Use use);  // of Vulkan, as VK_MAKE_API_VERSION

struct DeviceInfo {
  std::uint32_t index = 0;  // in the driver's list
  std::string name;         // "llvmpipe (LLVM 15.0.6, 256 bits)"
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint32_t version = 0;      // of Vulkan, as VK_MAKE_API_VERSION
  bool runs_data_graphs = false;  // has the ML extensions and a queue for data graphs
  bool emulated = false;          // through the emulation layer
  bool computes = false;          // has a queue for compute shaders
  vulkan_program::DeviceTraits traits = {};
  spirv::FloatControls floats = {};  // that modules may ask for
  VkPhysicalDeviceLimits limits = {};
  VkDeviceSize memory_bytes = 0;  // of the largest heap
  // "580.65.6", as the vendor counts; and what the driver says of itself, "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)", from
  // Vulkan 1.2 on.
  std::string driver_version, driver_name;
};

// `wanted`: an index, a part of a name (any case), or empty: the best one. The result is a place in the list.
// Errors: vulkan.no-driver, vulkan.device, vulkan.version, vulkan.no-extension.
Result<std::size_t> choose(const std::vector<DeviceInfo>& devices, const std::string& wanted,
                           Use use = Use::data_graphs);

// An instance and what it offers.
struct Driver {
  VkInstance instance = VK_NULL_HANDLE;
  std::vector<DeviceInfo> devices;
  std::vector<VkPhysicalDevice> handles;  // as many
};

std::string version_text(std::uint32_t version);  // "1.3"

// Opens the loader and makes an instance, with or without the emulation layer. Instances are not destroyed with what
// else is static: drivers and layers run code of their own at exit, in an order that nobody controls
// (Device::close_at_exit says which are, and when). Not for two threads at once.
// Errors: vulkan.no-loader, vulkan.no-driver, vulkan.no-extension.
Result<Driver> open_driver(bool emulation);

// A queue family; UINT32_MAX: none.
std::uint32_t data_graph_family(VkPhysicalDevice device);
std::uint32_t compute_family(VkPhysicalDevice device);

}  // namespace tosaic::vulkan
