// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor that the caller lends, wherever its strides put them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tosaic {

// f(i, offset) for each element in row-major order: its number, and how many elements behind the first it lies.
template <class F>
void for_each_strided(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides, const F& f) {
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
  std::vector<std::int64_t> index(sizes.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    f(i, offset);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace tosaic
