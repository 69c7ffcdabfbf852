// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// What conv1d/2d/3d and conv_transpose* become in programs after run_decompositions.
Vals lower(Builder& b, const Call& call) {
  Val weight = call.tensor("weight");
  const int spatial = weight.rank() - 2;
  if (spatial < 1 || spatial > 3) b.refuse("aten.convolution.rank", "a weight of shape " + to_string(weight.shape()));
  Convolution how;
  how.stride = call.spread("stride", spatial);
  how.pad_before = how.pad_after = call.spread("padding", spatial);
  how.dilation = call.spread("dilation", spatial);
  how.groups = call.integer("groups");
  how.output_padding = call.spread("output_padding", spatial);
  auto run = call.flag("transposed") ? convolve_transposed : convolve;
  return run(b, "convolution", call.tensor("input"), weight, call.optional_tensor("bias"), how);
}
}  // namespace

AtenOp aten_convolution() {
  return {.schemas = {"convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
                      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor"},
          .summary = "convolution in one to three dims, or its adjoint",
          .rule = Rule::accumulate,
          .lower = {lower},
          .domain = {"x(1,3,8,8), const(x(4,3,3,3)), const(x(4)), [1,1], [1,1], [1,1], False, [0,0], 1",
                     "x(1,3,8), const(x(4,3,3)), None, [2], [1], [1], False, [0], 1",
                     "x(1,3,4,4), const(x(3,2,3,3)), const(x(2)), [2,2], [1,1], [1,1], True, [1,1], 1",
                     "x(1,2,3,4,4), const(x(2,2,2,2,2)), None, [1,1,1], [0,0,0], [1,1,1], False, [0,0,0], 1"}};
}
}  // namespace tosaic
