// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const auto zero = static_cast<double>(call.integer("zero_point"));
  Val code = b.scaled(functions::widened(call.tensor("input")), 1 / call.number("scale"));
  code = b.clamp(code, static_cast<double>(call.integer("quant_min")) - zero,
                 static_cast<double>(call.integer("quant_max")) - zero);
  if (zero != 0) code = b.add(b.cast(functions::rounded(code, DType::i32), code.dtype()), zero);
  return functions::rounded(code, call.dtype("dtype").value_or(DType::i8));
}
}  // namespace

AtenOp aten_quantize_per_tensor() {
  return {.schemas = {"quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int "
                      "quant_min, int quant_max, ScalarType dtype) -> Tensor"},
          .summary = "clamp(round(input / scale) + zero_point, quant_min, quant_max) as integers",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"u(-4,4,2,3,4), 0.02, 3, -128, 127, i8 # integer=target.conversion: the boundary between floats "
                     "and quantised values lies outside",
                     "u(-4,4,24), 0.001, 0, -32768, 32767, i16 # integer=target.conversion: the boundary between "
                     "floats and quantised values lies outside",
                     "f(28), 0.5, -5, -128, 127, i8 # integer=target.conversion: the boundary between floats and "
                     "quantised values lies outside"}};
}
}  // namespace tosaic
