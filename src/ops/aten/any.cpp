// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = b.cast(call.tensor("self"), DType::boolean);
  const bool all = call.schema().name == "all", dims = call.overload() != "default";
  std::vector<int> axes;
  if (dims) axes = call.axes("dim", x.rank());
  else for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (call.overload() == "dims" && call.has("dim") && call.ints("dim").empty()) return x;  // no dims, not all
  return b.reduce(all ? "reduce_all" : "reduce_any", x, axes, dims && call.flag("keepdim"));
}
}  // namespace

AtenOp aten_any() {
  return {.schemas = {"any(Tensor self) -> Tensor",
              "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
              "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
              "all(Tensor self) -> Tensor",
              "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
              "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"},
          .summary = "whether any (all) of the elements are true",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: b(2,3)",
                     "dim: b(2,3,4), -1",
                     "dims: b(2,3,4), [0,2], True",
                     "default: i(0,1,3)",
                     "all.default: b(2,2)",
                     "all.dim: b(3,2), 1, True",
                     "all.dims: b(2,3,2), [0,-1]"}};
}
}  // namespace tosaic
