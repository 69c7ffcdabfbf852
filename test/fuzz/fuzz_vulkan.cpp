// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of TosaicVulkan, and as one of its shaders: checked, or a diagnostic says what is wrong.
#include "formats/spirv/compute/check_shader.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"

namespace {

// At the bounds of all sizes, and at the least.
void resize(tosaic::vulkan_program::Program program) {
  for (const bool at_bounds : {true, false}) {
    std::vector<tosaic::Shape> shapes;
    for (const auto& t : program.inputs) {
      std::vector<std::int64_t> sizes;
      for (const tosaic::Dim& d : t.type.shape.dims()) sizes.push_back(at_bounds ? tosaic::most(d) : tosaic::least(d));
      shapes.emplace_back(std::move(sizes));
    }
    const auto sizes = tosaic::vulkan_program::sizes_of(program, shapes);
    if (!sizes.ok()) continue;
    for (auto& tier : program.tiers)
      if (!tosaic::vulkan_program::resize(program, *sizes, tier.dispatches).ok()) break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  const tosaic::Bytes bytes = tosaic::Bytes::copy(data, size);
  const auto shader = tosaic::spirv::check_shader(bytes.as<tosaic::spirv::Word>());
  if (!shader.ok() && shader.error().code != "vulkan-program.shader") __builtin_trap();
  const auto program = tosaic::vulkan_program::read(bytes);
  if (!program.ok() && program.error().internal) __builtin_trap();
  // What was read is written, and read again.
  if (program.ok() && !tosaic::vulkan_program::read(tosaic::vulkan_program::write(*program).joined()).ok())
    __builtin_trap();
  if (program.ok() && !program->expressions.empty()) resize(*program);
  return 0;
}
