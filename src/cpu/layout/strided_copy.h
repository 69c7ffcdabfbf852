// SPDX-License-Identifier: Apache-2.0
// Moves elements between two layouts: what transpose, slice, reverse, tile, concat and pad have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/system/thread_pool.h"

namespace tosaic::cpu {

// Element (i0, i1, ...) goes from from_offset + sum i*from_stride to to_offset + sum i*to_stride (elements).
struct StridedCopy {
  std::vector<std::int64_t> dims, from_stride, to_stride;
  std::int64_t from_offset = 0, to_offset = 0;
  std::size_t element = 1;  // bytes: 1, 2, 4 or 8

  // Drops dims of one element and joins dims that are walked as one. Call once, before `run`.
  void simplify();
  void run(const std::byte* from, std::byte* to, ThreadPool& pool) const;

 private:
  void run_outer(std::int64_t first, std::int64_t last, const std::byte* from, std::byte* to) const;
  bool transpose(const std::byte* from, std::int64_t from_pitch, std::byte* to, std::int64_t to_pitch,
                 std::int64_t rows, std::int64_t columns) const;
  void plane(const std::byte* from, std::byte* to) const;
};

}  // namespace tosaic::cpu
