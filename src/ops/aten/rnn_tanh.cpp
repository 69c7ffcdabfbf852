// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_recurrent(b, call, 1, tanh_step); }
}  // namespace

AtenOp aten_rnn_tanh() {
  return {.schemas = {"rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
                      "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)"},
          .summary = "the plain recurrent layer with tanh, unrolled over the sequence",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,2,4), x(1,2,5), [x(5,4), x(5,5), x(5), x(5)], True, 1, 0.0, False, False, False # "
                     "integer=quantise.bias-type: only a constant bias fits the accumulator"}};
}
}  // namespace tosaic
