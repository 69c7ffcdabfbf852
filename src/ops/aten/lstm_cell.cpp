// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const auto hx = call.tensors("hx");
  if (hx.size() < 2) b.refuse("aten.lstm_cell.state", "one state instead of two");
  RecurrentWeights w{call.tensor("w_ih"), call.tensor("w_hh"), call.optional_tensor("b_ih"),
                     call.optional_tensor("b_hh")};
  return lstm_step(linear(call.tensor("input"), w.input, w.input_bias), {*hx[0], *hx[1]}, w);
}
}  // namespace

AtenOp aten_lstm_cell() {
  return {.schemas = {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
                      "b_hh=None) -> (Tensor, Tensor)"},
          .summary = "one step of long short-term memory",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,4), [x(2,3), x(2,3)], x(12,4), x(12,3), x(12), x(12) # integer=quantise.bias-type: only a "
                     "constant bias fits the accumulator",
                     "x(2,4), [x(2,3), x(2,3)], x(12,4), x(12,3) # int16x8=target.unsupported: 16-bit weights that are "
                     "computed have no convolution"}};
}
}  // namespace tosaic
