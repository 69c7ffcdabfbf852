// SPDX-License-Identifier: Apache-2.0
#include "ir/reshaped_dim.h"

namespace tosaic {

std::optional<ReshapedDim> reshaped_dim(const Shape& from, int dim, const Shape& to) {
  if (from.is_empty()) return std::nullopt;
  const std::int64_t count = from.size(dim);
  std::int64_t outer = 1, inner = 1, before = 1;
  for (int d = 0; d < from.rank(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= from.size(d);
  for (int d = 0; d < to.rank(); before *= to.size(d++)) {
    std::int64_t after = 1;
    for (int e = d + 1; e < to.rank(); ++e) after *= to.size(e);
    if (outer % before != 0 || inner % after != 0) continue;
    const std::int64_t repeats = outer / before, run = inner / after;
    if (to.size(d) == repeats * count * run) return ReshapedDim{d, run, count};
  }
  return std::nullopt;
}

}  // namespace tosaic
