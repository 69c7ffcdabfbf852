// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_recurrent(b, call, 1, relu_step); }
}  // namespace

AtenOp aten_rnn_relu() {
  return {.schemas = {"rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
                      "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)"},
          .summary = "the plain recurrent layer with relu, unrolled over the sequence",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,2,4), x(2,2,3), [x(3,4), x(3,3), x(3), x(3), x(3,3), x(3,3), x(3), x(3)], True, 2, 0.0, "
                     "False, False, False # integer=quantise.bias-type: only a constant bias fits the accumulator"}};
}
}  // namespace tosaic
