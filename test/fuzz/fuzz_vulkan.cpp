// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of TosaicVulkan, and as one of its shaders: checked, or a diagnostic says what is wrong.
#include "formats/spirv/check_shader.h"
#include "formats/vulkan_program/vulkan_program.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  const tosaic::Bytes bytes = tosaic::Bytes::copy(data, size);
  const auto shader = tosaic::spirv::check_shader(bytes.as<tosaic::spirv::Word>());
  if (!shader.ok() && shader.error().code != "vulkan-program.shader") __builtin_trap();
  const auto program = tosaic::vulkan_program::read(bytes);
  if (!program.ok() && program.error().internal) __builtin_trap();
  // What was read is written, and read again.
  if (program.ok() && !tosaic::vulkan_program::read(tosaic::vulkan_program::write(*program)).ok()) __builtin_trap();
  return 0;
}
