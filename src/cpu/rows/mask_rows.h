// SPDX-License-Identifier: Apache-2.0
// The rows of a mask, which broadcasts, that rows of elements meet.
#pragma once
#include <algorithm>
#include <vector>

#include "ir/type.h"

namespace tosaic::cpu {

class MaskRows {
 public:
  MaskRows(const Shape& mask, const Shape& rows, int axis) {
    std::int64_t stride = mask.size(axis);
    for (int d = axis - 1; d >= 0; --d) {
      dims_.push_back({rows.size(d), mask.size(d) == 1 ? 0 : stride});
      stride *= mask.size(d);
    }
  }
  // f(first, count, where the mask has the first one's row, and how much further the next one's) for parts of the rows
  // [first, first + count) whose rows of the mask lie evenly.
  template <class F>
  void for_parts(std::int64_t first, std::int64_t count, const F& f) const {
    for (std::int64_t part = 0; count > 0; first += part, count -= part) {
      part = dims_.empty() ? count : std::min(count, dims_[0].size - first % dims_[0].size);
      std::int64_t at = 0, index = first;
      for (const Along& dim : dims_) {
        at += index % dim.size * dim.stride;
        index /= dim.size;
      }
      f(first, part, at, dims_.empty() ? 0 : dims_[0].stride);
    }
  }

 private:
  struct Along {
    std::int64_t size, stride;
  };
  std::vector<Along> dims_;  // before the axis, the innermost first
};

}  // namespace tosaic::cpu
