// SPDX-License-Identifier: Apache-2.0
// Where the matrices of a batched product begin.
#pragma once
#include <functional>

#include "shaders/kernel.h"

namespace tosaic::shaders {

// Number b begins at b * apart; or, where lists of `inner` matrices are in a list (the heads of several images, or of
// windows of one), at b / inner * outer + b % inner * apart.
struct StridedBatches {
  Dim apart = 0;
  std::int64_t inner = 0;  // 0: all are one list
  Dim outer = 0;

  bool are_multiples(std::int64_t of) const { return is_multiple(apart, of) && is_multiple(outer, of); }
  // `units`: numbers of elements as the buffer counts them.
  Value begin(Kernel& s, Value batch, const std::function<Dim(const Dim&)>& units) const {
    if (!inner) return batch * s.param(units(apart));
    const Value of_list = s.param(inner);
    return batch / of_list * s.param(units(outer)) + batch % of_list * s.param(units(apart));
  }
  Value begin(Kernel& s, Value batch) const {
    return begin(s, batch, [](const Dim& elements) { return elements; });
  }
};

}  // namespace tosaic::shaders
