// SPDX-License-Identifier: Apache-2.0
// The checksum of zip archives, at the speed of memory: every weight is looked at once more.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic::simd {

// CRC-32 as in ISO 3309 and zip: polynomial 0x04c11db7, bits reflected, ones before and behind.
std::uint32_t crc32(const void* data, std::size_t size);

}  // namespace tosaic::simd
