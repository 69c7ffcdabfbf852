// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = as_summed(b, call, with_dtype(b, call, call.tensor("self")));
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
