// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_convolution(b, call, 1); }
}  // namespace

AtenOp aten_conv1d() {
  return {.schemas = {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
                      "padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
                      "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str "
                      "padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor"},
          .summary = "a kernel slid over a sequence, N,C,L",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(2,3,10), const(x(4,3,3)), const(x(4)), [2], [1]",
                     "x(2,4,9), const(x(4,1,3)), None, [1], [2], [2], 4", "x(3,8), const(x(2,3,2))",
                     "padding: x(1,3,7), const(x(4,3,4)), None, [1], 'same'"},
          .core = core_convolution};
}
}  // namespace tosaic
