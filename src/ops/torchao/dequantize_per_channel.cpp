// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  if (x.rank() == 0) b.refuse("aten.dequantize_per_channel.rank", "a scalar has no channels");
  const DType to = call.dtype("out_dtype").value_or(DType::f32);
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
  const int axis = call.axis("axis", x.rank());
  dims[static_cast<std::size_t>(axis)] = x.dim(axis);
  auto spread = [&](Val v) { return b.reshape(b.cast(v, to), Shape(dims)); };
  Val y = b.cast(x, to);
  if (auto zero = call.optional_tensor("zero_points")) y = b.sub(y, spread(*zero));
  return b.mul(y, spread(call.tensor("scales")));
}
}  // namespace

AtenOp aten_dequantize_per_channel() {
  return {.schemas = {"quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? "
                      "zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? "
                      "out_dtype=None) -> Tensor"},
          .summary = "(input - zero_point) * scale, with one scale and zero point for each index along axis",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"const(i8(-128,127,4,3,2)), const(u(0.01,0.1,4)), const(l(-3,3,4)), 0, -128, 127, i8",
                     "i8(-128,127,2,3), u(0.01,0.1,3), None, 1, -127, 127, i8"}};
}
}  // namespace tosaic
