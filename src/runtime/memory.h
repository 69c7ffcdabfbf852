// SPDX-License-Identifier: Apache-2.0
// Memory planning for a program: where each tensor lives in the arena.
#pragma once
#include <cstdint>
#include <vector>

namespace tosaic::runtime {

struct Lifetime {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // instructions during which the tensor is needed, both included
  std::uint64_t offset = 0;           // the answer, a multiple of 16
};

// Largest first, each at the lowest offset where no tensor that lives at the same time is in the way. Returns the
// arena's size.
std::uint64_t plan_memory(std::vector<Lifetime>& tensors);

}  // namespace tosaic::runtime
