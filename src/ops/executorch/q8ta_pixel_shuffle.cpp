// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/int8_operands.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = b.aten(aten::op::pixel_shuffle, {dequantise_operand(call, "input", "input")},
                 {{"upscale_factor", call.integer("upscale_factor")}});
  return quantise_result(call, x, 1 / call.number("output_inv_scale"));
}
}  // namespace

AtenOp aten_q8ta_pixel_shuffle() {
  return {.schemas = {"et_vk::q8ta_pixel_shuffle(Tensor input, float input_scale, int input_zero_point, float "
                      "output_inv_scale, int output_zero_point, int upscale_factor) -> Tensor"},
          .summary = "channels as pixels, of int8 tensors (ExecuTorch's Vulkan flow)",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"i8(-128,127,1,8,2,3), 0.021, 3, 47.3, -5, 2"}};
}
}  // namespace tosaic
