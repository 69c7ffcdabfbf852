// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = b.cast(call.tensor("self"), DType::boolean);
  if (call.overload() == "dims" && call.has("dim") && call.ints("dim").empty()) return x;  // no dims, not all
  return b.reduce(call.schema().name == "all" ? "reduce_all" : "reduce_any", x, reduced_axes(call, x),
                  keeps_dims(call));
}
}  // namespace

AtenOp aten_any() {
  return {.schemas = {"any(Tensor self) -> Tensor", "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                      "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
                      "all(Tensor self) -> Tensor", "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                      "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"},
          .summary = "whether any (all) of the elements are true",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: b(2,3)", "dim: b(2,3,4), -1", "dims: b(2,3,4), [0,2], True", "default: i(0,1,3)",
                     "dim: f(28), 0", "all.dim: f(28), 0", "all.default: b(2,2)", "all.dim: b(3,2), 1, True",
                     "all.dims: b(2,3,2), [0,-1]"},
          .out_overloads = {
              {"any.dim", "out"}, {"all.dim", "out"}, {"any.default", "all_out"}, {"all.default", "all_out"}}};
}
}  // namespace tosaic
