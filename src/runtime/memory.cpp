// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <algorithm>
#include <numeric>

namespace tosaic::runtime {

std::uint64_t plan_memory(std::vector<Lifetime>& tensors) {
  constexpr std::uint64_t alignment = 16;
  auto padded = [](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  std::uint64_t end = 0;
  for (std::size_t t : order) {
    Lifetime& tensor = tensors[t];
    std::uint64_t offset = 0;
    for (std::size_t p : placed) {
      const Lifetime& other = tensors[p];
      if (other.last < tensor.first || tensor.last < other.first) continue;
      if (offset + padded(tensor.bytes) <= other.offset) break;
      offset = std::max(offset, other.offset + padded(other.bytes));
    }
    tensor.offset = offset;
    end = std::max(end, offset + padded(tensor.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), t,
                                   [&](std::size_t a, std::size_t b) { return tensors[a].offset < tensors[b].offset; }),
                  t);
  }
  return end;
}

}  // namespace tosaic::runtime
