// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor that the caller lends, wherever its strides put them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tosaic/dtype.hpp"

namespace tosaic {

// The addresses from the first to the last element that a lent tensor has.
struct Extent {
  std::int64_t begin = 0, end = 0;
  bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// `sizes` are those of a tensor that there is, `strides` may be anything: none where they lead out of all memory.
inline std::optional<Extent> extent_of(const void* data, DType dtype, const std::vector<std::int64_t>& sizes,
                                       const std::vector<std::int64_t>& strides) {
  std::int64_t low = 0, high = 1, dense = 1;  // in elements
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return Extent();
    const std::int64_t stride = strides.empty() ? dense : strides[i];
    std::int64_t reach = 0, &side = stride < 0 ? low : high;
    if (__builtin_mul_overflow(stride, sizes[i] - 1, &reach) || __builtin_add_overflow(side, reach, &side)) return {};
    if (__builtin_mul_overflow(dense, sizes[i], &dense)) return {};
  }
  const auto base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data));
  const auto size = static_cast<std::int64_t>(storage_size(dtype));
  Extent extent;
  if (__builtin_mul_overflow(low, size, &low) || __builtin_mul_overflow(high, size, &high) ||
      __builtin_add_overflow(base, low, &extent.begin) || __builtin_add_overflow(base, high, &extent.end) ||
      extent.begin < 0)
    return {};
  return extent;
}

inline Diagnostic too_far(std::string code, const std::string& what) {
  return error(std::move(code), what + " has strides that lead out of all memory")
      .hint("strides are in elements, not in bytes; none at all means dense and row-major");
}

// f(i, offset) for each element in row-major order: its number, and how many elements after the first it lies.
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
