// SPDX-License-Identifier: Apache-2.0
// Operators of ExecuTorch's Vulkan flow on int8 quantised values: what they mean in floats, and the quantised values of
// that.
#pragma once
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {

inline Val dequantise_operand(const Call& call, std::string_view quantised, const std::string& prefix) {
  return call.builder().aten(quantized_decomposed::op::dequantize_per_tensor, {call.tensor(quantised)},
                             {{"scale", call.number(prefix + "_scale")},
                              {"zero_point", call.integer(prefix + "_zero_point")},
                              {"quant_min", std::int64_t{-128}},
                              {"quant_max", std::int64_t{127}},
                              {"dtype", DType::i8}});
}

inline Val quantise_result(const Call& call, Val real, double scale) {
  return call.builder().aten(quantized_decomposed::op::quantize_per_tensor, {real},
                             {{"scale", scale},
                              {"zero_point", call.integer("output_zero_point")},
                              {"quant_min", std::int64_t{-128}},
                              {"quant_max", std::int64_t{127}},
                              {"dtype", DType::i8}});
}
inline Val quantise_result(const Call& call, Val real) {
  return quantise_result(call, real, call.number("output_scale"));
}

inline Val activated(const Call& call, Val x) {
  const std::string activation = call.text("activation");
  if (activation != "none" && activation != "relu")
    call.builder().refuse("aten.codes.activation", "an activation '" + activation + "'");
  return activation == "relu" ? calls::unary(aten::op::relu, x) : x;
}

// As many elements of a bias as there are channels: it may be padded.
inline std::optional<Val> unpadded_bias(const Call& call, std::int64_t channels, DType dtype) {
  auto bias = call.optional_tensor("bias");
  if (!bias) return bias;
  if (bias->rank() != 1 || bias->dim(0) < channels)
    call.builder().refuse("aten.codes.bias", "a bias of shape " + to_string(bias->shape()) + " for " +
                                                 std::to_string(channels) + " channels");
  return call.builder().cast(call.builder().slice_axis(*bias, 0, 0, channels), dtype);
}

}  // namespace tosaic
