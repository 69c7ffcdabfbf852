// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/walk.h"

#include <cstring>

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

void copy_elements(const Shape& shape, std::size_t element_bytes, const void* from, const Walk& from_walk, void* to,
                   const Walk& to_walk) {
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
