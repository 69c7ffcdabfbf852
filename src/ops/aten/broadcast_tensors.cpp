// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  std::vector<std::int64_t> dims;
  const auto tensors = call.tensors("tensors");
  for (const auto& t : tensors) {
    while (static_cast<int>(dims.size()) < t->rank()) dims.insert(dims.begin(), 1);
    for (int i = 0; i < t->rank(); ++i) {
      auto& d = dims[dims.size() - static_cast<std::size_t>(t->rank() - i)];
      if (t->dim(i) != 1) d = t->dim(i);
    }
  }
  Vals results;
  for (const auto& t : tensors) results.push_back(b.broadcast_to(*t, Shape(dims)));
  return results;
}
}  // namespace

AtenOp aten_broadcast_tensors() {
  return {.schemas = {"broadcast_tensors(Tensor[] tensors) -> Tensor[]"},
          .summary = "the tensors, each repeated to the shape that they broadcast to",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"[x(3,1), x(4), x(2,1,1)]"}};
}
}  // namespace tosaic
