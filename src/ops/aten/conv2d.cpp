// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_convolution(b, call, 2); }
}  // namespace

AtenOp aten_conv2d() {
  return {.schemas = {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
                      "padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
                      "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str "
                      "padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor"},
          .summary = "a kernel slid over an image, N,C,H,W",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(1,3,8,8), const(x(4,3,3,3)), const(x(4)), [1,1], [1,1]",
                     "x(2,3,9,7), const(x(4,3,3,2)), None, [2,3], [1,0]",
                     "x(1,4,6,6), const(x(8,1,3,3)), const(x(8)), [1,1], [1,1], [1,1], 4",
                     "x(1,4,7,7), const(x(6,2,3,3)), const(x(6)), [2,2], [1,1], [1,1], 2",
                     "x(3,9,9), const(x(2,3,3,3)), const(x(2)), [1,1], [2,2], [2,2]",
                     "padding: x(1,2,6,7), const(x(3,2,4,3)), None, [1,1], 'same', [1,2]",
                     "padding: x(1,2,6,7), x(3,2,4,3), x(3), [2,2], 'valid'"},
          .core = core_convolution};
}
}  // namespace tosaic
