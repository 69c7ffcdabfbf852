// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_transposed_convolution(b, call, 3); }
}  // namespace

AtenOp aten_conv_transpose3d() {
  return {.schemas = {"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, "
                      "1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] "
                      "dilation=[1, 1, 1]) -> Tensor"},
          .summary = "the adjoint of conv3d: each input element adds a scaled kernel to the output",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(1,2,2,3,3), const(x(2,3,2,3,2)), const(x(3)), [2,2,1], [0,1,0], [1,0,0]"},
          .core = core_convolution};
}
}  // namespace tosaic
