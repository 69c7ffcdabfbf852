// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_transposed_convolution(b, call, 2); }
}  // namespace

AtenOp aten_conv_transpose2d() {
  return {
      .schemas =
          {"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
           "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor"},
      .summary = "the adjoint of conv2d: each input pixel adds a scaled kernel to the output",
      .rule = Rule::accumulate,
      .lower = {lower},
      .domain = {"x(1,3,4,5), const(x(3,2,3,3)), const(x(2)), [2,2], [1,1], [1,1]", "x(1,3,4,4), const(x(3,2,2,3))",
                 "x(1,4,3,3), const(x(4,2,3,3)), const(x(4)), [2,1], [1,0], [1,0], 2",
                 "x(1,4,4,4), const(x(4,1,4,4)), None, [2,2], [1,1], [0,0], 4",
                 "x(1,2,3,4), const(x(2,3,2,2)), const(x(3)), [1,2], [1,0], [0,1], 1, [2,2]",
                 "x(2,5,5), const(x(2,3,1,1)), None, [1,1], [1,1]"},
      .core = core_convolution};
}
}  // namespace tosaic
