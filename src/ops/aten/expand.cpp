// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  auto sizes = call.ints("size");
  const int added = static_cast<int>(sizes.size()) - x.rank();
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i)
    if (auto& s = sizes[static_cast<std::size_t>(i)]; s == -1) {
      if (i < added) b.refuse("aten.expand.size", "size -1 of a new dim has no value");
      s = x.dim(i - added);
    }
  return b.broadcast_to(x, Shape(sizes));
}
}  // namespace

AtenOp aten_expand() {
  return {.schemas = {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                      "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
                      "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"},
          .summary = "repeats dims of size 1 to a larger shape",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,1), [3,4]", "x(3,1), [2,-1,4]", "x(1), [5]", "b(1,2), [3,2]",
                     "expand_copy.default: x(3,1), [3,2]", "broadcast_to.default: x(3), [2,3]"}};
}
}  // namespace tosaic
