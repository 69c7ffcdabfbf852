// SPDX-License-Identifier: Apache-2.0
// Payloads of TosaicVulkan of which one offset is another: read or refused. The verifier of flatbuffers lets vectors of
// eight-byte elements begin anywhere; UBSan sees who reads them in place. test/shaders has the other lies.
#include "formats/vulkan_program/vulkan_program.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tosaic {
namespace {

TEST(VulkanProgram, offsets_that_point_elsewhere) {
  const auto file = map_file(TOSAIC_TEST_DATA "/shaders/version_1.bin");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(vulkan_program::read(*file).ok());
  for (std::size_t i = 0; i + 4 <= file->size(); i += 4)
    for (const std::uint32_t by : {4u, 0u - 4u}) {
      std::vector<std::byte> bytes(file->data(), file->data() + file->size());
      std::uint32_t offset = 0;
      std::memcpy(&offset, &bytes[i], 4);
      offset += by;
      std::memcpy(&bytes[i], &offset, 4);
      const auto read = vulkan_program::read(Bytes::of(bytes));
      if (!read.ok()) { EXPECT_FALSE(read.error().internal) << i; }
    }
}

}  // namespace
}  // namespace tosaic
