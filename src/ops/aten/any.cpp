// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool all = call.schema().name == "all";
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty())
    return of_nothing(call, given, reduced_axes(call, given), keeps_dims(call), all ? 1 : 0, DType::boolean);
  const Val x = b.cast(given, DType::boolean);
  const DType result = given.dtype() == DType::u8 ? DType::u8 : DType::boolean;  // PyTorch's answer about bytes is one
  if (call.overload() == "dims" && call.has("dim") && call.ints("dim").empty())
    return b.cast(x, result);  // not all dims
  return b.cast(b.reduce(all ? tosa::op::reduce_all : tosa::op::reduce_any, x, reduced_axes(call, x), keeps_dims(call)),
                result);
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
                     "dim: f(28), 0", "all.dim: f(28), 0", "all.default: b(2,2)", "dim: u8(0,2,3,4), 1",
                     "all.default: u8(0,3,4)", "all.dim: b(3,2), 1, True", "all.dims: b(2,3,2), [0,-1]"},
          .out_overloads = {
              {"any.dim", "out"}, {"all.dim", "out"}, {"any.default", "all_out"}, {"all.default", "all_out"}}};
}
}  // namespace tosaic
