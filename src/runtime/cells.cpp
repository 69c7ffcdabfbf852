// SPDX-License-Identifier: Apache-2.0
#include "runtime/cells.h"

#include <cstring>

namespace tosaic::runtime {
namespace {

// Calls f(row-major index, index in memory) for every element.
template <class F>
void for_each_place(const TensorCell& cell, F&& f) {
  const auto rank = static_cast<std::size_t>(cell.type.rank());
  std::vector<std::int64_t> stride(rank, 1), index(rank, 0);
  std::int64_t run = 1;
  for (std::size_t k = rank; k-- > 0;) {
    stride[cell.dim_order[k]] = run;
    run *= cell.type.shape.size(cell.dim_order[k]);
  }
  const std::int64_t count = cell.type.shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < rank; ++d) at += index[d] * stride[d];
    f(static_cast<std::size_t>(i), static_cast<std::size_t>(at));
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < cell.type.shape.size(static_cast<int>(d))) break;
      index[d] = 0;
    }
  }
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
