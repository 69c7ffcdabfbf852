// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tosaic::runtime {
namespace {

// Sizes of one say nothing of where elements lie, and PyTorch's dim orders put them anywhere.
std::vector<std::int64_t> without_ones(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> kept;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(kept), [](std::int64_t n) { return n != 1; });
  return kept;
}

}  // namespace

bool lies_in_order(const TensorCell& cell) {
  int last = -1;
  for (std::uint8_t d : cell.dim_order) {
    if (cell.type.shape.size(d) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

TensorType type_in_memory(const TensorCell& cell, const tosaic_delegate_tensor_info* wanted) {
  if (cell.dim_order.empty()) return cell.type;
  std::vector<std::int64_t> sizes;
  for (std::uint8_t d : cell.dim_order) sizes.push_back(cell.type.shape.size(d));
  if (wanted && wanted->rank == sizes.size())
    if (const std::span most(wanted->most, wanted->rank); without_ones(sizes) == without_ones(most))
      sizes.assign(most.begin(), most.end());
  return {cell.type.dtype, Shape(std::move(sizes)), {}};
}

}  // namespace tosaic::runtime
