// SPDX-License-Identifier: Apache-2.0
#include "vulkan/call.h"

#include <fmt/format.h>

namespace tosaic::vulkan {
namespace {

const char* name_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FORMAT_NOT_SUPPORTED: return "VK_ERROR_FORMAT_NOT_SUPPORTED";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    case VK_ERROR_UNKNOWN: return "VK_ERROR_UNKNOWN";
    default: return nullptr;
  }
}

}  // namespace

Diagnostic failed(VkResult result, const char* function) {
  const char* name = name_of(result);
  const std::string said = name ? name : fmt::format("VkResult {}", static_cast<int>(result));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return error("vulkan.memory", fmt::format("the Vulkan device has no memory left: {} answers {}", function, said))
          .hint(
              "run fewer or smaller models at a time, or on the CPU: --device cpu, or --target tosa-fp where the "
              "program "
              "has a Vulkan delegate");
    case VK_ERROR_DEVICE_LOST:
      return error("vulkan.lost", fmt::format("the Vulkan device was lost: {} answers {}", function, said))
          .hint("load the model again: that opens the device anew");
    default: return error("vulkan.failed", fmt::format("{} answers {}", function, said));
  }
}

Diagnostic thrown(const char* function, const char* what) {
  Diagnostic why = error("vulkan.failed", fmt::format("{} failed: {}", function, what));
  why.notes.emplace_back("the driver or a layer threw a C++ exception");
  return why;
}

}  // namespace tosaic::vulkan
