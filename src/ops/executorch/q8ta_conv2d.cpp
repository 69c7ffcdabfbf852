// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/int8_operands.h"
#include "ops/lowering/packed_weight.h"

namespace tosaic {
namespace {
// The weight as ExecuTorch's flow lays it out, [OC, KH * KW * IC] padded to fours (depthwise [KH, KW, OC]), as
// quantised values of PyTorch's [OC, IC, KH, KW].
Val unpacked(Builder& b, const Call& call, std::int64_t input_channels) {
  Val weight = call.tensor("weights");
  const auto kernel = call.spread("kernel_size", 2);
  const std::int64_t groups = call.integer("groups");
  if (kernel.empty()) b.refuse("aten.q8ta_conv2d.shape", "a kernel of no size");
  for (std::int64_t k : kernel)
    if (k < 1 || k > 1 << 16) b.refuse("aten.q8ta_conv2d.shape", "a kernel of " + std::to_string(k));
  const std::int64_t channels = groups > 0 ? input_channels / groups : 0, taps = kernel[0] * kernel[1] * channels;
  const auto refuse = [&] {
    b.refuse("aten.q8ta_conv2d.shape", "weights of shape " + to_string(weight.shape()) + " for a kernel of " +
                                           std::to_string(kernel[0]) + "x" + std::to_string(kernel[1]) + " over " +
                                           std::to_string(channels) + " channels");
  };
  if (call.schema().name == "q8ta_conv2d_dw") {
    if (weight.rank() != 3 || weight.dim(0) != kernel[0] || weight.dim(1) != kernel[1] || channels != 1) refuse();
    return b.reshape(b.transpose(weight, {2, 0, 1}), {weight.dim(2), 1, kernel[0], kernel[1]});
  }
  if (weight.rank() != 2 || taps < 1 || weight.dim(1) < taps) refuse();
  Val rows = b.reshape(b.slice_axis(weight, 1, 0, taps), {weight.dim(0), kernel[0], kernel[1], channels});
  return b.transpose(rows, {0, 3, 1, 2});
}

Vals lower(Builder& b, const Call& call) {
  const bool transposed = call.schema().name == "q8ta_conv2d_transposed";
  Val x = dequantise_operand(call, "x", "input");
  if (x.rank() != 4) b.refuse("aten.q8ta_conv2d.rank", "an input of shape " + to_string(x.shape()));
  if (transposed && call.integer("groups") != 1)
    b.refuse("aten.q8ta_conv2d.groups", "a transposed convolution in groups");
  Val weight = eight_bit_weight(unpacked(b, call, x.dim(1)), b.cast(call.tensor("weight_scales"), x.dtype()));
  const std::int64_t channels = weight.dim(0);
  if (transposed) weight = b.transpose(weight, {1, 0, 2, 3});
  Attrs how;
  for (const char* name : {"stride", "padding", "dilation"}) how.set(name, call.spread(name, 2));
  how.set("transposed", transposed);
  how.set("output_padding", transposed ? call.spread("output_padding", 2) : std::vector<std::int64_t>{0, 0});
  how.set("groups", call.integer("groups"));
  Val y = b.aten(aten::op::convolution, {x, weight, unpadded_bias(call, channels, x.dtype())}, how);
  return quantise_result(call, activated(call, y));
}
}  // namespace

AtenOp aten_q8ta_conv2d() {
  return {
      .schemas =
          {"et_vk::q8ta_conv2d(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
           "weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias, SymInt[] "
           "kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, str activation) -> "
           "Tensor",
           "et_vk::q8ta_conv2d_pw(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
           "weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias, SymInt[] "
           "kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, str activation) -> "
           "Tensor",
           "et_vk::q8ta_conv2d_dw(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
           "weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias, SymInt[] "
           "kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, str activation) -> "
           "Tensor",
           "et_vk::q8ta_conv2d_transposed(Tensor x, float input_scale, int input_zero_point, Tensor weights, "
           "Tensor weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias, "
           "SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] output_padding, SymInt[] dilation, "
           "SymInt groups, str activation) -> Tensor"},
      .summary = "a convolution of int8 tensors (ExecuTorch's Vulkan flow)",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {
          "i8(-128,127,1,3,6,6), 0.02, 3, const(i8(-127,127,4,28)), const(i(0,9,4)), const(u(0.001,0.01,4)), 0.1, -4, "
          "const(x(4)), [3,3], [2,2], [1,1], [1,1], 1, 'relu'",
          "i8(-128,127,1,4,5,5), 0.02, 3, const(i8(-127,127,6,20)), const(i(0,9,8)), const(u(0.001,0.01,8)), 0.1, -4, "
          "None, [3,3], [1,1], [0,0], [1,1], 2, 'none'",
          "q8ta_conv2d_pw.default: i8(-128,127,1,4,3,3), 0.02, 3, const(i8(-127,127,3,4)), const(i(0,9,4)), "
          "const(u(0.001,0.01,4)), 0.1, -4, const(x(4)), [1,1], [1,1], [0,0], [1,1], 1, 'none'",
          "q8ta_conv2d_dw.default: i8(-128,127,1,4,5,5), 0.02, 3, const(i8(-127,127,3,3,4)), const(i(0,9,4)), "
          "const(u(0.001,0.01,4)), 0.1, -4, const(x(4)), [3,3], [1,1], [1,1], [1,1], 4, 'relu'",
          "q8ta_conv2d_transposed.default: i8(-128,127,1,3,4,4), 0.02, 3, const(i8(-127,127,2,28)), const(i(0,9,4)), "
          "const(u(0.001,0.01,4)), 0.1, -4, const(x(4)), [3,3], [2,2], [1,1], [1,1], [1,1], 1, 'none'"}};
}
}  // namespace tosaic
