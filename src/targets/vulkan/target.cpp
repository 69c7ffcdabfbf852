// SPDX-License-Identifier: Apache-2.0
// Vulkan's compute shaders: the payload holds them with the memory plan and the weights; any Vulkan device runs it.
#include "targets/target.h"
#include "shaders/compile.h"

namespace tosaic {
namespace {

Result<Emitted> emit(const Graph& graph, const Target&, const Options&, const std::string&) {
  TOSAIC_TRY(const vulkan_program::Program program, shaders::compile(graph));
  return Emitted{vulkan_program::write(program)};
}

}  // namespace

std::vector<Target> target_vulkan() {
  Target target{"vulkan",
                "compute shaders for any Vulkan device, float and integer",
                "Vulkan",
                shaders::spec(),
                "TosaicVulkan",
                nullptr,
                emit};
  target.device = "vulkan";
  return {target};
}

}  // namespace tosaic
