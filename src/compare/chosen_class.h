// SPDX-License-Identifier: Apache-2.0
// The class that a row of a result names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic {

// at(c), of each of the classes: the first of the largest, as PyTorch's argmax has it. A single one is a probability: 1
// above 0.5.
template <class At>
std::int64_t chosen_class(std::size_t classes, const At& at) {
  if (classes == 1) return at(std::size_t{0}) > 0.5 ? 1 : 0;
  std::size_t best = 0;
  for (std::size_t c = 1; c < classes; ++c)
    if (at(c) > at(best)) best = c;
  return static_cast<std::int64_t>(best);
}

}  // namespace tosaic
