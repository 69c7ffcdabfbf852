// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_recurrent(b, call, 2, lstm_step); }
}  // namespace

AtenOp aten_lstm() {
  return {
      .schemas = {"lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
                  "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)"},
      .summary = "long short-term memory, unrolled over the sequence",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {
          "x(3,2,4), [x(1,2,5), x(1,2,5)], [const(x(20,4)), const(x(20,5)), const(x(20)), const(x(20))], True, 1, "
          "0.0, False, False, False",
          "x(2,3,4), [x(2,2,3), x(2,2,3)], [x(12,4), x(12,3), x(12,4), x(12,3)], False, 1, 0.0, False, True, True # "
          "int16x8=target.unsupported: 16-bit weights that are computed have no convolution",
          "x(3,1,4), [x(2,1,3), x(2,1,3)], [x(12,4), x(12,3), x(12), x(12), x(12,3), x(12,3), x(12), x(12)], True, 2, "
          "0.0, False, False, False # integer=quantise.bias-type: only a constant bias fits the accumulator",
          "x(3,2,4), [x(2,2,2), x(2,2,5)], [const(x(20,4)), const(x(20,2)), const(x(20)), const(x(20)), "
          "const(x(2,5)), const(x(20,2)), const(x(20,2)), const(x(20)), const(x(20)), const(x(2,5))], True, 2, 0.0, "
          "False, False, False",
          "x(3,1,4), [x(2,1,2), x(2,1,3)], [x(12,4), x(12,2), x(2,3), x(12,4), x(12,2), x(2,3)], False, 1, 0.0, False, "
          "True, False # int16x8=target.unsupported: 16-bit weights that are computed have no convolution"}};
}
}  // namespace tosaic
