// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty())
    return of_nothing(call, given, reduced_axes(call, given), keeps_dims(call), 0,
                      is_float(given.dtype()) ? given.dtype() : DType::i32);
  Val x = as_summed(b, call, with_dtype(b, call, given));
  return summed(x, reduced_axes(call, x), keeps_dims(call));
}
}  // namespace

AtenOp aten_sum() {
  return {
      .schemas = {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                  "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
      .summary = "the sum of the elements, over some dims or all",
      .rule = Rule::sum,
      .lower = {lower},
      .domain = {"dim_IntList: x(2,3,4), [1]", "dim_IntList: x(2,3,4), [0,-1], True", "dim_IntList: x(2,3), None, True",
                 "dim_IntList: i(-9,9,3,4), [0]", "default: x(2,3,4)", "default: b(3,4)"},
      .out_overloads = {{"sum.dim_IntList", "IntList_out"}}};
}
}  // namespace tosaic
