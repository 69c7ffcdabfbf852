// SPDX-License-Identifier: Apache-2.0
// Which Vulkan devices there are and which one is taken.
#pragma once
#include <volk.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tosaic::vulkan {

struct DeviceInfo {
  std::uint32_t index = 0;  // in the driver's list
  std::string name;         // "llvmpipe (LLVM 15.0.6, 256 bits)"
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint32_t version = 0;      // of Vulkan, as VK_MAKE_API_VERSION
  bool runs_data_graphs = false;  // has the ML extensions and a queue for data graphs
  bool emulated = false;          // through the emulation layer
};

// `wanted`: an index, a part of a name (any case), or empty: the best one. The result is a place in the list.
// Errors: vulkan.no-driver, vulkan.device, vulkan.version, vulkan.no-extension.
Result<std::size_t> choose(const std::vector<DeviceInfo>& devices, const std::string& wanted);

// An instance and what it offers.
struct Driver {
  VkInstance instance = VK_NULL_HANDLE;
  std::vector<DeviceInfo> devices;
  std::vector<VkPhysicalDevice> handles;  // as many
};

// Opens the loader and makes an instance, with or without the emulation layer. Instances are never destroyed: drivers
// and layers run code of their own at exit, in an order that nobody controls. Not for two threads at once.
// Errors: vulkan.no-loader, vulkan.no-driver, vulkan.no-extension.
Result<Driver> open_driver(bool emulation);

std::uint32_t data_graph_family(VkPhysicalDevice device);  // a queue family; UINT32_MAX: none

}  // namespace tosaic::vulkan
