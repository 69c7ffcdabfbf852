// SPDX-License-Identifier: Apache-2.0
// What check_shader says of many modules.
#pragma once
#include <span>
#include <vector>

#include "base/bytes.h"
#include "formats/spirv/compute/check_shader.h"

namespace tosaic::vulkan_program {

// Of each of them, on all cores: it takes up to a few milliseconds for one.
std::vector<Result<spirv::ShaderInterface>> check_modules(std::span<const Bytes> modules);

}  // namespace tosaic::vulkan_program
