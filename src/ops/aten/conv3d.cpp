// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_convolution(b, call, 3); }
}  // namespace

AtenOp aten_conv3d() {
  return {.schemas = {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
                      "padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
                      "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
                      "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor"},
          .summary = "a kernel slid over a volume, N,C,D,H,W",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(1,2,5,6,7), const(x(3,2,3,2,3)), const(x(3)), [2,1,2], [1,0,1]",
                     "x(1,4,4,4,4), const(x(4,2,2,2,2)), None, [1,1,1], [0,0,0], [1,2,1], 2",
                     "padding: x(1,2,4,4,4), const(x(2,2,3,3,2)), None, [1,1,1], 'same'"},
          .core = core_convolution};
}
}  // namespace tosaic
