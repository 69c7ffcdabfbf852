// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/packed_weight.h"

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/lowering/calls.h"

namespace tosaic {

std::vector<double> elements_of(Val constant) {
  Builder& b = constant.builder();
  if (!constant.is_constant())
    b.refuse("aten.packed-weight", "weights and scales that are computed while the program runs");
  const Bytes data = b.graph()[constant.id()].constant;
  std::vector<double> elements(static_cast<std::size_t>(constant.shape().elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = element_as_double(constant.dtype(), data.data(), i);
  return elements;
}

Val four_bit_weight(Val packed, Val scales, DType dtype, const FourBits& how) {
  Builder& b = packed.builder();
  const auto refuse = [&] {
    b.refuse("aten.packed-weight.shape", "weights of shape " + to_string(packed.shape()) + " with scales of shape " +
                                             to_string(scales.shape()) + " for " + std::to_string(how.columns) +
                                             " columns in groups of " + std::to_string(how.group));
  };
  if (packed.rank() != 2 || packed.dtype() != DType::u8 || how.group < 1 || how.columns < 1 ||
      packed.dim(1) * 2 < how.columns)
    refuse();
  const std::int64_t rows = packed.dim(0);
  if ((rows - 1) * how.row_stride + (how.columns - 1) / how.group * how.group_stride >= scales.shape().elements())
    refuse();
  const std::vector<double> scale = elements_of(scales);
  if (!packed.is_constant()) elements_of(packed);  // refuses
  const Bytes data = b.graph()[packed.id()].constant;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * how.columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < how.columns; ++c) {
      const int byte = bytes[r * packed.dim(1) + c / 2];
      const bool low = (c % 2 == 0) == how.even_is_low;
      const double code = (low ? byte & 15 : byte >> 4) - 8;
      values.push_back(code * scale[static_cast<std::size_t>(r * how.row_stride + c / how.group * how.group_stride)]);
    }
  return b.constant({dtype, Shape{rows, how.columns}, {}}, constant_bytes(dtype, values));
}

Val eight_bit_weight(Val quantised, Val scales) {
  Builder& b = quantised.builder();
  if (quantised.rank() < 1 || scales.rank() != 1 || scales.dim(0) < quantised.dim(0))
    b.refuse("aten.packed-weight.shape",
             "weights of shape " + to_string(quantised.shape()) + " with scales of shape " + to_string(scales.shape()));
  std::vector<std::int64_t> dims(static_cast<std::size_t>(quantised.rank()), 1);
  dims[0] = quantised.dim(0);
  return b.mul(b.cast(quantised, scales.dtype()), b.reshape(b.slice_axis(scales, 0, 0, quantised.dim(0)), Shape(dims)));
}

Val through_quantised(Val x, double scale, std::int64_t zero_point) {
  Builder& b = x.builder();
  const Attrs how{{"scale", scale},
                  {"zero_point", zero_point},
                  {"quant_min", std::int64_t{-128}},
                  {"quant_max", std::int64_t{127}},
                  {"dtype", DType::i8}};
  Val quantised = b.aten(quantized_decomposed::op::quantize_per_tensor, {x}, how);
  Attrs back = how;
  back.set("out_dtype", x.dtype());
  return b.aten(quantized_decomposed::op::dequantize_per_tensor, {quantised}, back);
}

}  // namespace tosaic
