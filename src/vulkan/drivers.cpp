// SPDX-License-Identifier: Apache-2.0
#include "vulkan/drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <tuple>

#include "vulkan/call.h"
#include "vulkan/compute_features.h"
#include "vulkan/driver_means.h"
#include "vulkan/emulation_layer.h"
#include "vulkan/ml_extensions.h"

namespace tosaic::vulkan {
namespace {

constexpr std::uint32_t least_graph_version = VK_API_VERSION_1_3, least_compute_version = VK_API_VERSION_1_1;
constexpr const char* how_to_emulate =
    "pip install ai_ml_emulation_layer_for_vulkan==0.11.0 brings both on any Vulkan 1.3 driver; it is found through "
    "VK_LAYER_PATH, VIRTUAL_ENV or PATH";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has_extensions(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> list(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list.data());
  return std::ranges::all_of(
      std::initializer_list<const char*>{"VK_ARM_tensors", "VK_ARM_data_graph"}, [&](const char* name) {
        return std::ranges::any_of(
            list, [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
      });
}

int rank_of(const DeviceInfo& d) {
  switch (d.type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 1;
    default: return 0;
  }
}

bool able(const DeviceInfo& d, Use use) { return use == Use::compute ? d.computes : d.runs_data_graphs; }

Diagnostic with_list(Diagnostic why, const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& d : devices)
    why.notes.push_back(fmt::format("device {}: {}, Vulkan {}", d.index, d.name, version_text(d.version)));
  return why;
}

Diagnostic no_driver(const std::string& detail) {
  return error("vulkan.no-driver", "there is no Vulkan driver" + detail)
      .hint(
          "install the GPU's driver, or Debian's mesa-vulkan-drivers, which has one for CPUs (lavapipe); "
          "VK_DRIVER_FILES and VK_ICD_FILENAMES, where they are set, must name existing files");
}

bool layers_listed() {
  std::uint32_t count = 0;
  if (vkEnumerateInstanceLayerProperties(&count, nullptr) < 0) return false;
  std::vector<VkLayerProperties> list(count);
  if (vkEnumerateInstanceLayerProperties(&count, list.data()) < 0) return false;
  return std::all_of(std::begin(emulation_layers), std::end(emulation_layers), [&](const char* name) {
    return std::ranges::any_of(list, [&](const VkLayerProperties& l) { return std::strcmp(l.layerName, name) == 0; });
  });
}

Result<VkInstance> make_instance(bool emulation) {
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = application.pEngineName = "tosaic";
  application.apiVersion = std::min(least_graph_version, volkGetInstanceVersion());
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (emulation) {
    info.enabledLayerCount = static_cast<std::uint32_t>(std::size(emulation_layers));
    info.ppEnabledLayerNames = emulation_layers;
  }
  VkInstance instance = VK_NULL_HANDLE;
  VkResult result = VK_SUCCESS;
  TOSAIC_CHECK(called("vkCreateInstance", [&] {
    result = vkCreateInstance(&info, nullptr, &instance);
    return result == VK_ERROR_INCOMPATIBLE_DRIVER ? VK_SUCCESS : result;
  }));
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return no_driver(": the loader found none that it can use")
        .note(
            "a driver that is installed may want a library that is not (libX11, libEGL): VK_LOADER_DEBUG=error names "
            "it");
  return instance;
}

Result<VkInstance> make_emulated_instance() {
  const auto not_found = [] {
    return error("vulkan.no-extension",
                 "no device has VK_ARM_tensors and VK_ARM_data_graph, and Arm's emulation layer is not installed")
        .hint(how_to_emulate);
  };
  const auto files = find_emulation_files();
  if (files && !load_emulation_libraries(*files))
    return error("vulkan.no-extension", fmt::format("the emulation layer in {} cannot be loaded", files->libraries));
  if (layers_listed()) return make_instance(true);
  if (!files) return not_found();
  const Environment folder = with_layer_folder(files->manifests);
  return layers_listed() ? make_instance(true) : Result<VkInstance>(not_found());
}

// Vendors count in their own ways; NVIDIA is the one that does not count as Vulkan does.
std::string driver_version(const VkPhysicalDeviceProperties& p) {
  const std::uint32_t v = p.driverVersion;
  if (p.vendorID == 0x10de) return fmt::format("{}.{}.{}", v >> 22, v >> 14 & 0xff, v >> 6 & 0xff);
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v), VK_API_VERSION_PATCH(v));
}

std::string driver_name(VkPhysicalDevice device) {
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  all.pNext = &driver;
  vkGetPhysicalDeviceProperties2(device, &all);
  return fmt::format("{}{}{}", driver.driverName, *driver.driverInfo ? ", " : "", driver.driverInfo);
}

}  // namespace

std::uint32_t least_version(Use use) { return use == Use::compute ? least_compute_version : least_graph_version; }

std::string version_text(std::uint32_t v) {
  return fmt::format("{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v));
}

Result<std::size_t> choose(const std::vector<DeviceInfo>& devices, const std::string& wanted, Use use) {
  if (devices.empty()) return no_driver(" that offers a device");
  std::vector<std::size_t> candidates;
  std::uint32_t index = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto number = std::from_chars(wanted.data(), end, index);
  const bool is_index = !wanted.empty() && number.ec == std::errc() && number.ptr == end;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (wanted.empty() ||
        (is_index ? devices[i].index == index : lower(devices[i].name).find(lower(wanted)) != std::string::npos))
      candidates.push_back(i);
  if (candidates.empty())
    return with_list(error("vulkan.device", fmt::format("there is no Vulkan device '{}'", wanted)), devices)
        .hint("--vulkan-device takes an index or a part of a name");
  const auto best = *std::ranges::max_element(candidates, [&](std::size_t a, std::size_t b) {
    const auto merit = [&](std::size_t i) {
      const bool recent = devices[i].version >= least_version(use);
      return std::tuple(recent && able(devices[i], use), recent, rank_of(devices[i]));
    };
    return merit(a) < merit(b);
  });
  const DeviceInfo& d = devices[best];
  if (d.version < least_version(use))
    return with_list(error("vulkan.version", fmt::format("{} has Vulkan {}, {} is needed", d.name,
                                                         version_text(d.version), version_text(least_version(use)))),
                     devices)
        .hint("a newer driver of the device, or Debian's mesa-vulkan-drivers for the CPU");
  if (use == Use::compute && !d.computes)
    return error("vulkan.feature", fmt::format("{} has no queue for compute shaders", d.name));
  if (use == Use::data_graphs && !d.runs_data_graphs)
    return error("vulkan.no-extension", fmt::format("{} has no {}", d.name,
                                                    d.emulated ? "queue for data graphs, also with the emulation layer"
                                                               : "VK_ARM_tensors and VK_ARM_data_graph"))
        .hint(how_to_emulate);
  return best;
}

std::uint32_t data_graph_family(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  std::uint32_t found = UINT32_MAX;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_DATA_GRAPH_BIT_ARM)) continue;
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;  // runs shader segments too
    if (found == UINT32_MAX) found = i;
  }
  return found;
}

// One without graphics, if there is one: on an H200 the device is up to a tenth faster, as barriers wait for less.
std::uint32_t compute_family(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  std::uint32_t found = UINT32_MAX;
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT)) continue;
    if (!(flags & VK_QUEUE_GRAPHICS_BIT)) return i;
    found = std::min(found, i);
  }
  return found;
}

Result<Driver> open_driver(bool emulation) {
  TOSAIC_CHECK(has_means_for_drivers());
  if (volkGetInstanceVersion() == 0 && volkInitialize() != VK_SUCCESS)
    return error("vulkan.no-loader", "libvulkan.so.1, the Vulkan loader, is not installed")
        .hint("Debian's package is libvulkan1; a driver is needed as well, e.g. mesa-vulkan-drivers for the CPU");
  if (volkGetInstanceVersion() < least_compute_version)
    return error("vulkan.version",
                 fmt::format("the Vulkan loader knows Vulkan {}, {} is needed", version_text(volkGetInstanceVersion()),
                             version_text(least_compute_version)));
  const Environment environment = without_emulation_layers();
  Driver driver;
  TOSAIC_TRY(driver.instance, emulation ? make_emulated_instance() : make_instance(false));
  volkLoadInstanceOnly(driver.instance);
  std::uint32_t count = 0;
  TOSAIC_CHECK(called("vkEnumeratePhysicalDevices",
                      [&] { return vkEnumeratePhysicalDevices(driver.instance, &count, nullptr); }));
  driver.handles.resize(count);
  TOSAIC_CHECK(called("vkEnumeratePhysicalDevices",
                      [&] { return vkEnumeratePhysicalDevices(driver.instance, &count, driver.handles.data()); }));
  driver.handles.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceProperties p;
    vkGetPhysicalDeviceProperties(driver.handles[i], &p);
    const bool able = has_extensions(driver.handles[i]) && data_graph_family(driver.handles[i]) != UINT32_MAX;
    const bool computes = compute_family(driver.handles[i]) != UINT32_MAX;
    DeviceInfo info{i, p.deviceName, p.deviceType, p.apiVersion, able, emulation, computes};
    if (p.apiVersion >= least_compute_version) {
      const ComputeFeatureChain features(driver.handles[i]);
      info.traits = features.found();
      info.floats = features.floats();
    }
    info.driver_version = driver_version(p);
    if (p.apiVersion >= VK_API_VERSION_1_2) info.driver_name = driver_name(driver.handles[i]);
    info.limits = p.limits;
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(driver.handles[i], &memory);
    for (std::uint32_t h = 0; h < memory.memoryHeapCount; ++h)
      info.memory_bytes = std::max(info.memory_bytes, memory.memoryHeaps[h].size);
    driver.devices.push_back(std::move(info));
  }
  return driver;
}

}  // namespace tosaic::vulkan
