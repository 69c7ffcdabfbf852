// SPDX-License-Identifier: Apache-2.0
// Walks over dense tensors in the order of an output: broadcasting, transposing, slicing and reversing are all
// the same loop with other strides.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/tensor.h"

namespace tosaic::tosa {

// Position (i0, i1, ...) of the shape that is walked reads element offset + i0*strides[0] + i1*strides[1] + ...
struct Walk {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};
// Every element of `shape` once, in memory order.
Walk row_major(const Shape& shape);
// A tensor of shape `in` walked in the positions of `out`: stride 0 where a dim of size 1 is broadcast.
Walk broadcasting(const Shape& in, const Shape& out);

// Calls f(at) for each position of `shape` in row-major order; at[k] is the element that walk k is at. Walks may have
// strides for more dims than the shape has: those stay at 0.
template <class F, std::same_as<Walk>... W>
void for_each_position(const Shape& shape, F&& f, const W&... walks) {
  constexpr std::size_t n = sizeof...(W);
  const std::array<const Walk*, n> walk{&walks...};
  std::array<std::int64_t, n> at{walks.offset...};
  const int rank = shape.rank();
  if (rank == 0) return void(f(at));
  if (shape.elements() == 0) return;
  const std::int64_t inner = shape.size(rank - 1);
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  std::array<std::int64_t, n> step;
  for (std::size_t k = 0; k < n; ++k) step[k] = walk[k]->strides[static_cast<std::size_t>(rank - 1)];
  for (;;) {
    auto here = at;
    for (std::int64_t i = 0; i < inner; ++i) {
      f(here);
      for (std::size_t k = 0; k < n; ++k) here[k] += step[k];
    }
    int d = rank - 2;
    for (; d >= 0; --d) {
      const auto s = static_cast<std::size_t>(d);
      for (std::size_t k = 0; k < n; ++k) at[k] += walk[k]->strides[s];
      if (++index[s] < shape.size(d)) break;
      for (std::size_t k = 0; k < n; ++k) at[k] -= walk[k]->strides[s] * shape.size(d);
      index[s] = 0;
    }
    if (d < 0) return;
  }
}

// to[to_walk] = from[from_walk] over `shape`, for elements of any storage type.
void copy_elements(const Shape& shape, std::size_t element_bytes, const void* from, const Walk& from_walk, void* to,
                   const Walk& to_walk);

}  // namespace tosaic::tosa
