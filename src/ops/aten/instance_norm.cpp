// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/batch_norm.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// With the input's own statistics each channel of each image is a group of its own.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  if (x.rank() < 3)
    b.refuse("aten.instance_norm.rank", "an input of shape " + to_string(x.shape()) + " has no spatial dims");
  auto weight = call.optional_tensor("weight"), bias = call.optional_tensor("bias");
  if (!call.flag("use_input_stats")) {
    return batch_normalised(x, weight, bias, call.tensor("running_mean"), call.tensor("running_var"),
                            call.number("eps"));
  }
  if (call.has("running_mean") || call.has("running_var"))
    b.refuse("aten.instance_norm.training",
             "instance_norm with input statistics would update its running statistics: export the model after eval()");
  std::vector<int> axes;
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return affine(normalised(x, axes, call.number("eps")).y, weight, bias, channel_shape(x));
}
}  // namespace

AtenOp aten_instance_norm() {
  return {.schemas = {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                      "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"},
          .summary = "normalises each channel of each image, then a weight and a bias",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,4,4), x(3), x(3), None, None, True, 0.1, 1e-5, True",
                     "x(2,3,5), None, None, None, None, True, 0.1, 1e-5, True",
                     "x(2,3,4,4), x(3), x(3), x(3), u(0.5,2,3), False, 0.1, 1e-5, True"}};
}
}  // namespace tosaic
