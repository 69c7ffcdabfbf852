// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/int8_operands.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return quantise_result(call, calls::unary(aten::op::relu, dequantise_operand(call, "input", "input")));
}
}  // namespace

AtenOp aten_q8ta_relu() {
  return {.schemas = {"et_vk::q8ta_relu(Tensor input, float input_scale, int input_zero_point, float output_scale, int "
                      "output_zero_point) -> Tensor"},
          .summary = "max(x, 0) of int8 tensors (ExecuTorch's Vulkan flow)",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"i8(-128,127,2,12), 0.021, 3, 0.017, -128"}};
}
}  // namespace tosaic
