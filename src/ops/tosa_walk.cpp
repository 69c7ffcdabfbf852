// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_walk.h"

#include <cstring>

namespace tosaic::tosa {

Walk row_major(const Shape& shape) {
  Walk walk;
  walk.strides.resize(static_cast<std::size_t>(shape.rank()));
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    walk.strides[static_cast<std::size_t>(i)] = stride;
    stride *= shape[i];
  }
  return walk;
}

Walk broadcasting(const Shape& in, const Shape& out) {
  Walk walk = row_major(in);
  for (int i = 0; i < in.rank(); ++i)
    if (in[i] == 1 && out[i] != 1) walk.strides[static_cast<std::size_t>(i)] = 0;
  return walk;
}

void copy_elements(const Shape& shape, std::size_t element_bytes, const void* from, const Walk& from_walk, void* to,
                   const Walk& to_walk) {
  auto copy = [&]<class T>(T) {
    const T* source = static_cast<const T*>(from);
    T* target = static_cast<T*>(to);
    for_each_position(
        shape, [&](const auto& at) { std::memcpy(target + at[1], source + at[0], sizeof(T)); }, from_walk, to_walk);
  };
  switch (element_bytes) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

}  // namespace tosaic::tosa
