// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool axes = call.schema().argument("axis0") != nullptr;
  std::vector<int> permutation(static_cast<std::size_t>(x.rank()));
  for (int i = 0; i < x.rank(); ++i) permutation[static_cast<std::size_t>(i)] = i;
  const int first = call.axis(axes ? "axis0" : "dim0", x.rank()), second = call.axis(axes ? "axis1" : "dim1", x.rank());
  if (x.rank() > 0)
    std::swap(permutation[static_cast<std::size_t>(first)], permutation[static_cast<std::size_t>(second)]);
  return b.transpose(x, permutation);
}
}  // namespace

AtenOp aten_transpose() {
  return {.schemas = {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
                      "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
                      "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
                      "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"},
          .summary = "exchanges two dims",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4), 0, 2", "x(2,3,4), -1, -2", "b(3,2), 0, 1", "swapaxes.default: x(2,3), 0, 1",
                     "transpose_copy.int: x(2,3), 0, 1", "swapdims.default: x(2,3,4), 1, -1"}};
}
}  // namespace tosaic
