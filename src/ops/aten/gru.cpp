// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/recurrent.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_recurrent(b, call, 1, gru_step); }
}  // namespace

AtenOp aten_gru() {
  return {.schemas = {"gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
                      "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)"},
          .summary = "gated recurrent unit, unrolled over the sequence",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,2,4), x(1,2,5), [const(x(15,4)), const(x(15,5)), const(x(15)), const(x(15))], True, 1, 0.0, "
                     "False, False, False",
                     "x(2,3,4), x(2,2,3), [x(9,4), x(9,3), x(9,4), x(9,3)], False, 1, 0.0, False, True, True # "
                     "int16x8=target.unsupported: 16-bit weights that are computed have no convolution"}};
}
}  // namespace tosaic
