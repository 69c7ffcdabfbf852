// SPDX-License-Identifier: Apache-2.0
// Where buffers lie in an arena: two share bytes only when they are never needed at the same step. For executors, and
// for programs whose memory is planned when they are packed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tosaic::plan {

struct Buffer {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // steps during which the buffer is alive, both included
  std::uint64_t offset = 0;           // the answer, a multiple of the alignment
};

// The step at which most is alive, the first of several, and how much: no arena is smaller.
struct Peak {
  std::uint32_t step = 0;
  std::uint64_t bytes = 0;
};
Peak peak_of(const std::vector<Buffer>& buffers, std::uint64_t alignment);

// Largest first (equal ones in their order), each at the lowest offset that is free as long as it lives. Where that
// takes more than the peak, a second time: those that are alive at the peak first, then outwards in time, largest first
// at equal distance; the smaller arena is kept. Returns its size. Takes O(n log n) where the taken offsets of a time
// lie together, as they nearly do: what costs more is gaps between them.
std::uint64_t place(std::vector<Buffer>& buffers, std::uint64_t alignment);

}  // namespace tosaic::plan
