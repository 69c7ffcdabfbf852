// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/int8_operands.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val a = dequantise_operand(call, "input_a", "input_a"), b = dequantise_operand(call, "input_b", "input_b");
  return quantise_result(call, calls::add(a, calls::mul(b, call.number("alpha"))));
}
}  // namespace

AtenOp aten_q8ta_add() {
  return {.schemas = {"et_vk::q8ta_add(Tensor input_a, Tensor input_b, float input_a_scale, int input_a_zero_point, "
                      "float input_b_scale, int input_b_zero_point, float output_scale, int output_zero_point, float "
                      "alpha) -> Tensor"},
          .summary = "the sum of two int8 tensors (ExecuTorch's Vulkan flow)",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"i8(-128,127,2,12), i8(-128,127,2,12), 0.021, 3, 0.037, -5, 0.06, 2, 1.0",
                     "i8(-128,127,24), i8(-128,127,24), 0.02, 0, 0.05, 0, 0.06, 7, 2.0"}};
}
}  // namespace tosaic
