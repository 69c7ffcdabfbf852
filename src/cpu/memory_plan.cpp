// SPDX-License-Identifier: Apache-2.0
#include "cpu/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace tosaic::cpu {

std::size_t place(std::vector<Buffer>& buffers) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<std::uint32_t> placed;  // by ascending offset
  std::size_t arena = 0;
  for (std::uint32_t index : order) {
    Buffer& buffer = buffers[index];
    const std::size_t bytes = (buffer.bytes + 63) / 64 * 64;
    std::size_t offset = 0;
    for (std::uint32_t other_index : placed) {
      const Buffer& other = buffers[other_index];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (other.offset >= offset + bytes) break;
      offset = std::max(offset, other.offset + (other.bytes + 63) / 64 * 64);
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + bytes);
    auto at = std::lower_bound(placed.begin(), placed.end(), offset,
                               [&](std::uint32_t p, std::size_t o) { return buffers[p].offset < o; });
    placed.insert(at, index);
  }
  return arena;
}

}  // namespace tosaic::cpu
