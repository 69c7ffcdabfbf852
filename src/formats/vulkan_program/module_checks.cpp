// SPDX-License-Identifier: Apache-2.0
#include "formats/vulkan_program/module_checks.h"

#include "base/system/thread_pool.h"

namespace tosaic::vulkan_program {

std::vector<Result<spirv::ShaderInterface>> check_modules(std::span<const Bytes> modules) {
  std::vector<Result<spirv::ShaderInterface>> made(modules.size(), spirv::ShaderInterface{});
  ThreadPool::shared().run(static_cast<std::int64_t>(modules.size()), [&](std::int64_t i, int) {
    const auto m = static_cast<std::size_t>(i);
    made[m] = spirv::check_shader(modules[m].as<spirv::Word>());
  });
  return made;
}

}  // namespace tosaic::vulkan_program
