// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = b.cast(call.tensor("input"), call.dtype("out_dtype").value_or(DType::f32));
  return b.scaled(b.sub(x, static_cast<double>(call.integer("zero_point"))), call.number("scale"));
}
}  // namespace

AtenOp aten_dequantize_per_tensor() {
  return {.schemas = {"quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int "
                      "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor"},
          .summary = "(input - zero_point) * scale",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"i8(-128,127,2,3,4), 0.02, 3, -128, 127, i8", "i8(-128,127,24), 0.5, -7, -127, 127, i8"}};
}
}  // namespace tosaic
