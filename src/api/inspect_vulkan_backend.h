// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/bytes.h"
#include "tosaic/files.hpp"

namespace tosaic {

// The chain of operators in a payload of ExecuTorch's VulkanBackend.
Result<Inspection> inspect_vulkan_backend(const Bytes& payload, const std::string& name, const std::string& indent);

}  // namespace tosaic
