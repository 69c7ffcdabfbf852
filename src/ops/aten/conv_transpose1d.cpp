// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_transposed_convolution(b, call, 1); }
}  // namespace

AtenOp aten_conv_transpose1d() {
  return {
      .schemas = {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
                  "padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor"},
      .summary = "the adjoint of conv1d: each input element adds a scaled kernel to the output",
      .rule = Rule::accumulate,
      .lower = {lower},
      .domain = {"x(1,3,5), const(x(3,4,3)), const(x(4)), [2], [1], [1]",
                 "x(2,4,5), const(x(4,1,3)), None, [2], [0], [0], 4"},
      .core = core_convolution};
}
}  // namespace tosaic
