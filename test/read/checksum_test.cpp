// SPDX-License-Identifier: Apache-2.0
#include "simd/checksum.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace tosaic::test {
namespace {

// As the standard says it: bit by bit.
std::uint32_t by_the_book(const std::uint8_t* data, std::size_t size) {
  std::uint32_t sum = ~0u;
  for (std::size_t i = 0; i < size; ++i) {
    sum ^= data[i];
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum & 1u ? 0xedb88320u : 0u);
  }
  return ~sum;
}

TEST(Checksum, known_value) { EXPECT_EQ(simd::crc32("123456789", 9), 0xcbf43926u); }

// Around every length at which another loop begins, at every alignment.
TEST(Checksum, every_length_and_place) {
  std::mt19937 random(5);
  std::vector<std::uint8_t> data(1200);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
  for (std::size_t size = 0; size < 1100; ++size)
    for (const std::size_t begin : {0, 1, 15})
      ASSERT_EQ(simd::crc32(data.data() + begin, size), by_the_book(data.data() + begin, size)) << size;
}

}  // namespace
}  // namespace tosaic::test
