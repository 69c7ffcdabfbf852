// SPDX-License-Identifier: Apache-2.0
// Files as Bytes, and hashes of them. The type itself is public: tosaic/bytes.hpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tosaic/bytes.hpp"

namespace tosaic {

// 64-bit hash (XXH3), stable across runs and machines.
std::uint64_t hash_of(const void* data, std::size_t size, std::uint64_t seed = 0);
inline std::uint64_t hash_of(const Bytes& bytes) { return hash_of(bytes.data(), bytes.size()); }
inline std::uint64_t hash_of(std::string_view text) { return hash_of(text.data(), text.size()); }

// Maps a file read-only. Errors: file.missing, file.unreadable.
Result<Bytes> map_file(const std::string& path);
// Writes to a temporary name next to `path`, then renames: readers see the old file or the whole new one.
Status write_file(const std::string& path, const void* data, std::size_t size);
inline Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, text.data(), text.size());
}

}  // namespace tosaic
