// SPDX-License-Identifier: Apache-2.0
// The operators that payloads of ExecuTorch's VulkanBackend name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace tosaic::vulkan_backend {

// What brings a constant to the device.
inline constexpr const char* prepack = "et_vk.prepack.default";
// What only says where a tensor lies.
bool only_moves_memory(const std::string& op);

// PyTorch's operator behind the name in a payload: copies of views are the views, since nothing here writes to them.
FoundOp operator_of(const std::string& name);

// Sizes of tensors, and what Python makes of them.
bool gives_size(const std::string& op);
inline constexpr const char* number_of_tensor = "et_vk.select_as_symint.default";

// ExecuTorch's operators of caches, which write to some of their arguments.
struct CacheOperator {
  std::string_view name;
  std::size_t arguments;
  std::vector<std::size_t> written;
};
const CacheOperator* cache_operator(const std::string& op);  // nullptr: it is none

// Is the operator of a call one that becomes ATen here?
bool knows(const std::string& op);

}  // namespace tosaic::vulkan_backend
