// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const std::int64_t size = x.dim(axis);
  std::vector<std::int64_t> sizes;
  if (call.overload() == "sections") {
    const std::int64_t n = call.integer("sections");
    if (n < 1) b.refuse("aten.tensor_split.sections", std::to_string(n) + " sections");
    for (std::int64_t i = 0; i < n; ++i) sizes.push_back(size / n + (i < size % n));
  } else {
    std::int64_t at = 0;
    for (auto i : call.ints("indices")) {
      const std::int64_t end = std::clamp<std::int64_t>(i < 0 ? i + size : i, at, size);
      sizes.push_back(end - at);
      at = end;
    }
    sizes.push_back(size - at);
  }
  return split_at(x, axis, sizes);
}
}  // namespace

AtenOp aten_tensor_split() {
  return {.schemas = {"tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
                      "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]"},
          .summary = "cuts a dim into nearly equal parts, or at given indices",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"sections: x(7,2), 3", "indices: x(2,7), [2,-2], 1"},
          .core = core_parts};
}
}  // namespace tosaic
