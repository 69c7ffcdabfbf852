// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  RecurrentWeights w{call.tensor("w_ih"), call.tensor("w_hh"), call.optional_tensor("b_ih"),
                     call.optional_tensor("b_hh")};
  return gru_step(linear(call.tensor("input"), w.input, w.input_bias), {call.tensor("hx")}, w);
}
}  // namespace

AtenOp aten_gru_cell() {
  return {.schemas = {"gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
                      "b_hh=None) -> Tensor"},
          .summary = "one step of a gated recurrent unit",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,4), x(2,3), x(9,4), x(9,3), x(9), x(9) # integer=quantise.bias-type: only a constant bias "
                     "fits the accumulator"}};
}
}  // namespace tosaic
