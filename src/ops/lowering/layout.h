// SPDX-License-Identifier: Apache-2.0
// Between PyTorch's channels-first tensors and TOSA's channels-last ones, for the operator files under aten/.
// The transposes are emitted plainly around each operator; the tidy stage sinks and cancels them.
#pragma once
#include <string>
#include <vector>

#include "ops/builder.h"

namespace tosaic {

// N, C, spatial... -> N, spatial..., C; and back.
inline Val channels_last(Val x) {
  std::vector<int> permutation{0};
  for (int i = 2; i < x.rank(); ++i) permutation.push_back(i);
  permutation.push_back(1);
  return x.builder().transpose(x, permutation);
}
inline Val channels_first(Val x) {
  std::vector<int> permutation{0, x.rank() - 1};
  for (int i = 1; i < x.rank() - 1; ++i) permutation.push_back(i);
  return x.builder().transpose(x, permutation);
}

// PyTorch takes images with and without a batch dim. Gives x rank `rank`, remembering whether to take it off again.
struct Batched {
  Val x;
  bool added = false;
  Val restore(Val y) const {
    if (!added) return y;
    auto dims = y.shape().sizes();
    dims.erase(dims.begin());
    return y.builder().reshape(y, Shape(dims));
  }
};
inline Batched batched(Val x, int rank, const std::string& op) {
  if (x.rank() == rank) return {x, false};
  if (x.rank() == rank - 1) return {x.builder().unsqueeze(x, 0), true};
  x.builder().refuse("aten." + op + ".rank", op + " takes tensors of rank " + std::to_string(rank - 1) + " or " +
                                                 std::to_string(rank) + ", not " + to_string(x.shape()));
}

}  // namespace tosaic
