// SPDX-License-Identifier: Apache-2.0
// A file that is about to be written, as the pieces that follow one another in it. Weights among them stay views of the
// model's mapped file, so that a program of gigabytes is never in memory as a whole.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace tosaic {

class Rope {
 public:
  Rope() = default;
  Rope(Bytes whole);  // NOLINT: one piece is a file, too

  void append(const Bytes& chunk);
  void append(const Rope& rope);
  void zeros(std::uint64_t count);

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const Bytes> chunks() const { return chunks_; }
  // All of it in one stretch: itself where it is one piece, else a copy.
  Bytes joined() const;
  bool operator==(const Rope& other) const;

 private:
  std::vector<Bytes> chunks_;
  std::uint64_t size_ = 0;
};

// A rope from its beginning on, in stretches of any size. It has to stay.
class RopeReader {
 public:
  explicit RopeReader(const Rope& rope) : left_(rope.chunks()) {}
  // So many bytes more must be there.
  void next(std::size_t bytes, void* to);
  // The same as views.
  Rope next(std::uint64_t bytes);

 private:
  std::span<const Bytes> left_;
  std::size_t used_ = 0;  // of the first
};

std::uint64_t hash_of(const Rope& rope);  // of the joined bytes
// 128 bits (XXH3). With a seed that nobody knows, no file can be made to have another one's.
using Digest = std::array<std::uint64_t, 2>;
Digest digest_of(const Rope& rope, std::uint64_t seed);
// Distinguishes most data without reading it: sizes and ends of the pieces. Equal ropes that are cut alike have equal
// ones.
std::uint64_t glance_at(const Rope& rope);

}  // namespace tosaic
