// SPDX-License-Identifier: Apache-2.0
// Calls into Vulkan, with what they answer as a Status. Layers are C++ libraries that have been seen to let exceptions
// out of a C function: every call that may do work goes through here and ends as a diagnostic.
#pragma once
#include <volk.h>

#include <exception>

#include "base/result.h"

namespace tosaic::vulkan {

// Codes: vulkan.memory, vulkan.lost, vulkan.failed.
Diagnostic failed(VkResult result, const char* function);
Diagnostic thrown(const char* function, const char* what);

// called("vkCreateFence", [&] { return vk.vkCreateFence(...); })
template <class Call>
Status called(const char* function, Call&& call) {
  try {
    const VkResult result = call();
    if (result < 0) return failed(result, function);
  } catch (const std::exception& e) { return thrown(function, e.what()); } catch (...) {
    return thrown(function, "an exception of unknown type");
  }
  return {};
}
// The same for functions that answer nothing.
template <class Call>
Status called_void(const char* function, Call&& call) {
  return called(function, [&] {
    call();
    return VK_SUCCESS;
  });
}

}  // namespace tosaic::vulkan
