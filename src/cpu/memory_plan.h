// SPDX-License-Identifier: Apache-2.0
// Places buffers in one arena: two buffers share bytes only when they are never needed at the same step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tosaic::cpu {

struct Buffer {
  std::size_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // steps during which the buffer is alive, both included
  std::size_t offset = 0;             // the answer, a multiple of 64
};

// Largest first, each at the lowest offset where it fits (greedy by size). Returns the arena's size.
std::size_t place(std::vector<Buffer>& buffers);

}  // namespace tosaic::cpu
