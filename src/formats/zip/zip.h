// SPDX-License-Identifier: Apache-2.0
// A zip archive over a mapped file: the central directory, entries as views (stored) or inflated (deflate, via
// zlib). Zip64 is read. Local headers' sizes are never trusted. Checksums are not compared: PyTorch can be told
// to write none (torch.serialization.set_crc32_options), and hashing the weights costs more than reading them.
#pragma once
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tosaic::zip {

struct Entry {
  std::string name;
  std::uint64_t size = 0;  // uncompressed
  std::uint64_t compressed_size = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflate
  std::uint32_t crc32 = 0;
  std::uint64_t header_offset = 0;
};

class Archive {
 public:
  // Errors: zip.not-a-zip, zip.truncated, zip.bad-entry (names the entry and the two numbers that disagree).
  static Result<Archive> open(Bytes file, const std::string& name);
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  Result<Bytes> read(const Entry& entry) const;

 private:
  Bytes file_;
  std::string name_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> by_name_;  // indices of entries_, sorted by name
};

}  // namespace tosaic::zip
