// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (call.schema().name != "numpy_T" && x.rank() > 2)
    b.refuse("aten.t.rank", "t takes at most two dims, not " + to_string(x.shape()));
  std::vector<int> reversed(static_cast<std::size_t>(x.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return b.transpose(x, reversed);
}
}  // namespace

AtenOp aten_t() {
  return {.schemas = {"t(Tensor(a) self) -> Tensor(a)", "t_copy(Tensor self) -> Tensor",
                      "numpy_T(Tensor(a) self) -> Tensor(a)"},
          .summary = "the matrix transpose: all dims in reverse order",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)", "x(4)", "numpy_T.default: x(2,3,4)", "t_copy.default: x(2,3)"}};
}
}  // namespace tosaic
