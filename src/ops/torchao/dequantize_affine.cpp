// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/blocks.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val quantised = call.tensor("input");
  const DType real = call.dtype("output_dtype").value_or(DType::f32);
  if (!is_float(real)) b.refuse("aten.dequantize_affine.dtype", "a result that is no float");
  const Blocks blocks = blocks_of(call, quantised);
  Val x = calls::view(b.aten(aten::op::_to_copy, {quantised}, {{"dtype", real}}), blocks.split);
  if (auto zero = zero_points(call)) x = calls::sub(x, broadcast_to_blocks(call, *zero, blocks, real));
  return calls::view(calls::mul(x, broadcast_to_blocks(call, call.tensor("scale"), blocks, real)), quantised.shape());
}
}  // namespace

AtenOp aten_dequantize_affine() {
  return {.schemas = {"torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, "
                      "ScalarType input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType "
                      "output_dtype=6) -> Tensor"},
          .summary = "the real values of quantised blocks, each with its scale and zero point",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"i8(-128,127,2,6), [1,6], u(0.01,0.1,2), i(-9,9,2), i8, -128, 127",
                     "const(i8(-8,7,4,8)), [1,4], const(u(0.1,0.5,4,2)), const(i8(-3,3,4,2)), i8, -8, 7",
                     "i8(-9,9,3,4), [3,4], u(0.01,0.1,1), None, i8"}};
}
}  // namespace tosaic
