// SPDX-License-Identifier: Apache-2.0
// Where a dim goes in a reshape: it stays a dim, alone or with others around it as one.
#pragma once
#include <cstdint>
#include <optional>

#include "ir/type.h"

namespace tosaic {

// Of a tensor's dim of `count` indices. Index i of `dim` belongs to its index i / run % count.
struct ReshapedDim {
  int dim = 0;
  std::int64_t run = 1, count = 1;
  std::size_t index(std::int64_t i) const { return static_cast<std::size_t>(i / run % count); }
};
// Nothing: the dim is split, or its neighbours are.
std::optional<ReshapedDim> reshaped_dim(const Shape& from, int dim, const Shape& to);

}  // namespace tosaic
