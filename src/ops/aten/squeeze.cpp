// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  std::vector<int> axes;
  if (call.overload() == "dims" && call.ints("dim").empty()) return x;
  if (call.overload() == "default")
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  else
    axes = call.axes("dim", x.rank());
  return b.squeeze(x, axes);
}
}  // namespace

AtenOp aten_squeeze() {
  return {.schemas = {"squeeze(Tensor(a) self) -> Tensor(a)", "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
                      "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", "squeeze_copy(Tensor self) -> Tensor",
                      "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
                      "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor"},
          .summary = "drops dims of size 1",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(1,3,1,2)", "dim: x(1,3,1,2), -2", "dim: x(1,3,1,2), 1", "dims: x(1,3,1,2), [0,2]",
                     "squeeze_copy.default: x(1,3,1)", "squeeze_copy.dim: x(1,3,1), 0",
                     "squeeze_copy.dims: x(1,3,1), [0,-1]", "dims: x(1,3), []"}};
}
}  // namespace tosaic
