// SPDX-License-Identifier: Apache-2.0
#include "runtime/cells.h"

#include <cstring>

namespace tosaic::runtime {
namespace {

// In memory, from one index of the dimension to the next.
std::int64_t stride_of(const TensorCell& cell, std::uint8_t dimension) {
  std::int64_t stride = 1;
  for (std::size_t k = cell.dim_order.size(); cell.dim_order[--k] != dimension;)
    stride *= cell.type.shape.size(cell.dim_order[k]);
  return stride;
}

// Calls f(row-major index, index in memory) for every element below dimension `d`, of which `i` and `at` are the
// first's. Takes no memory: a run on a board has none.
template <class F>
void for_each_place(const TensorCell& cell, const F& f, int d, std::size_t& i, std::int64_t at) {
  if (d == cell.type.rank()) return f(i++, static_cast<std::size_t>(at));
  const std::int64_t stride = stride_of(cell, static_cast<std::uint8_t>(d));
  for (std::int64_t k = 0; k < cell.type.shape.size(d); ++k) for_each_place(cell, f, d + 1, i, at + k * stride);
}
template <class F>
void for_each_place(const TensorCell& cell, const F& f) {
  std::size_t i = 0;
  for_each_place(cell, f, 0, i, 0);
}

}  // namespace

const void* dense(const TensorCell& cell, std::vector<std::byte>& space) {
  if (cell.dim_order.empty()) return cell.data;
  const std::size_t item = storage_size(cell.type.dtype);
  space.resize(cell.type.storage_bytes());
  const auto* from = static_cast<const std::byte*>(cell.data);
  for_each_place(cell,
                 [&](std::size_t i, std::size_t at) { std::memcpy(space.data() + i * item, from + at * item, item); });
  return space.data();
}

void store_dense(const TensorCell& cell, const void* elements) {
  const auto* from = static_cast<const std::byte*>(elements);
  auto* to = static_cast<std::byte*>(cell.data);
  const std::size_t item = storage_size(cell.type.dtype);
  if (!cell.dim_order.empty())
    for_each_place(cell, [&](std::size_t i, std::size_t at) { std::memcpy(to + at * item, from + i * item, item); });
  else if (cell.type.storage_bytes() > 0 && to != from)
    std::memmove(to, from, cell.type.storage_bytes());
}

}  // namespace tosaic::runtime
