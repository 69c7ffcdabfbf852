// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/walk.h"

#include <cstdint>
#include <cstring>

#include "simd/transpose.h"

namespace tosaic::tosa {

Walk row_major(const Shape& shape) {
  Walk walk;
  walk.strides.resize(static_cast<std::size_t>(shape.rank()));
  std::uint64_t stride = 1;  // beyond 64 bits in what is empty only, where nobody walks
  for (int i = shape.rank() - 1; i >= 0; --i) {
    walk.strides[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape.size(i));
  }
  return walk;
}

Walk broadcasting(const Shape& in, const Shape& out) {
  Walk walk = row_major(in);
  for (int i = 0; i < in.rank(); ++i)
    if (in[i] == 1 && out[i] != 1) walk.strides[static_cast<std::size_t>(i)] = 0;
  return walk;
}

// One that is walked the other way round: side by side in memory lie the elements along another dim than the last one.
static bool transpose_planes(const Shape& shape, const void* from, const Walk& from_walk, void* to,
                             const Walk& to_walk) {
  std::vector<std::int64_t> outer = shape.sizes();
  const std::size_t last = outer.size() - 1;
  std::size_t side = 0;
  while (side < last && (from_walk.strides[side] != 1 || outer[side] == 1)) ++side;
  if (side == last || to_walk.strides[last] != 1 || outer[last] == 1) return false;
  const std::int64_t rows = outer[last], columns = outer[side];
  outer[last] = outer[side] = 1;
  for_each_position(
      Shape(outer),
      [&](const auto& at) {
        simd::transpose_words(static_cast<const std::uint32_t*>(from) + at[0], from_walk.strides[last],
                              static_cast<std::uint32_t*>(to) + at[1], to_walk.strides[side], rows, columns);
      },
      from_walk, to_walk);
  return true;
}

void copy_elements(const Shape& shape, std::size_t element_bytes, const void* from, const Walk& from_walk, void* to,
                   const Walk& to_walk) {
  const bool aligned = (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % 4 == 0;
  if (element_bytes == 4 && aligned && shape.rank() > 1 && transpose_planes(shape, from, from_walk, to, to_walk))
    return;
  // The last dim is a plain loop: constants of many megabytes pass through here, from files at any byte.
  const auto dims = shape.sizes();
  const Shape outer(dims.empty() ? dims : std::vector<std::int64_t>(dims.begin(), dims.end() - 1));
  const std::int64_t inner = dims.empty() ? 1 : dims.back();
  const std::int64_t from_step = dims.empty() ? 0 : from_walk.strides.back(),
                     to_step = dims.empty() ? 0 : to_walk.strides.back();
  auto copy = [&]<class T>(T) {
    for_each_position(
        outer,
        [&](const auto& at) {
          const T* source = static_cast<const T*>(from) + at[0];
          T* target = static_cast<T*>(to) + at[1];
          for (std::int64_t i = 0; i < inner; ++i) std::memcpy(target + i * to_step, source + i * from_step, sizeof(T));
        },
        from_walk, to_walk);
  };
  switch (element_bytes) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

}  // namespace tosaic::tosa
