// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tosaic {

Bytes Bytes::copy(const void* data, std::size_t size) {
  std::byte* memory = nullptr;
  Bytes bytes = fresh(size, memory);
  if (size) std::memcpy(memory, data, size);
  return bytes;
}

std::uint64_t hash_of(const void* data, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

}  // namespace tosaic
