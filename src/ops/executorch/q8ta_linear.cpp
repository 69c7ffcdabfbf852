// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/int8_operands.h"
#include "ops/lowering/packed_weight.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool quantised = call.schema().argument("output_scale") != nullptr;
  Val x = quantised ? dequantise_operand(call, "x", "input")
                    : through_quantised(call.tensor("x"), call.number("input_scale"), call.integer("input_zero_point"));
  Val weight = call.tensor("weights");
  if (weight.rank() != 2) b.refuse("aten.q8ta_linear.shape", "weights of shape " + to_string(weight.shape()));
  if (x.rank() >= 1 && weight.dim(1) > x.dim(-1)) weight = b.slice_axis(weight, 1, 0, x.dim(-1));
  Val y = b.aten(aten::op::linear, {x, eight_bit_weight(weight, b.cast(call.tensor("weight_scales"), x.dtype())),
                                    unpadded_bias(call, weight.dim(0), x.dtype())});
  return quantised ? quantise_result(call, activated(call, y)) : y;
}
}  // namespace

AtenOp aten_q8ta_linear() {
  return {
      .schemas = {"et_vk::q8ta_linear(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
                  "weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias=None, "
                  "str activation='none') -> Tensor",
                  "et_vk::q8ta_linear_gemv(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
                  "weight_sums, Tensor weight_scales, float output_scale, int output_zero_point, Tensor? bias=None, "
                  "str activation='none') -> Tensor",
                  "et_vk::linear_q8ta_q8csw(Tensor x, float input_scale, int input_zero_point, Tensor weights, Tensor "
                  "weight_sums, Tensor weight_scales, Tensor? bias=None) -> Tensor"},
      .summary = "x W^T + b of int8 tensors (ExecuTorch's Vulkan flow)",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"i8(-128,127,3,8), 0.02, 3, const(i8(-127,127,4,8)), const(i(0,9,4)), const(u(0.001,0.01,4)), 0.05, "
                 "-4, const(x(4))",
                 "i8(-128,127,3,8), 0.02, 3, const(i8(-127,127,4,8)), const(i(0,9,4)), const(u(0.001,0.01,4)), 0.05, "
                 "-4, const(x(4)), 'relu'",
                 "q8ta_linear_gemv.default: i8(-128,127,1,8), 0.02, 3, const(i8(-127,127,4,8)), const(i(0,9,4)), "
                 "const(u(0.001,0.01,4)), 0.05, -4, None, 'none'",
                 "linear_q8ta_q8csw.default: x(3,8), 0.02, 3, const(i8(-127,127,4,8)), const(i(0,9,4)), "
                 "const(u(0.001,0.01,4)), const(x(4)) # half=off: another quantised value where one in half precision "
                 "lies between two"}};
}
}  // namespace tosaic
