// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() == 0 || call.schema().name == "ravel") return b.reshape(x, {x.shape().elements()});
  const int first = call.axis("start_dim", x.rank()), last = call.axis("end_dim", x.rank());
  if (first > last)
    b.refuse("aten.flatten.dims", "start_dim " + std::to_string(first) + " is after end_dim " + std::to_string(last));
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (i > first && i <= last)
      dims.back() *= x.dim(i);
    else
      dims.push_back(x.dim(i));
  }
  return b.reshape(x, Shape(dims));
}
}  // namespace

AtenOp aten_flatten() {
  return {.schemas = {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
                      "ravel(Tensor(a) self) -> Tensor(a)"},
          .summary = "merges a range of dims into one",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4), 1", "x(2,3,4)", "x(2,3,4,5), 1, -2", "ravel.default: x(2,3)"}};
}
}  // namespace tosaic
