// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/blocks.h"
#include "ops/lowering/functions.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const DType to_dtype = call.dtype("output_dtype").value_or(DType::i8);
  if (!is_integer(to_dtype)) b.refuse("aten.quantize_affine.dtype", "quantised values that are no integers");
  const Blocks blocks = blocks_of(call, x);
  const tosa::Bounds range = quantised_range(call, to_dtype);
  Val scaled = calls::mul(calls::view(x, blocks.split),
                          calls::reciprocal(broadcast_to_blocks(call, call.tensor("scale"), blocks, x.dtype())));
  // What saturates here is clamped below as well.
  Val q = b.cast(functions::rounded(scaled, DType::i32), x.dtype());
  if (auto zero = zero_points(call)) q = calls::add(q, broadcast_to_blocks(call, *zero, blocks, x.dtype()));
  q = calls::view(calls::clamp(q, range.lowest, range.highest), x.shape());
  // Casts between integers are not of the floating-point profile.
  return {to_dtype == DType::u8 ? b.cast(functions::rounded(q, DType::i32), to_dtype)
                                : functions::rounded(q, to_dtype)};
}
}  // namespace

AtenOp aten_quantize_affine() {
  return {.schemas = {"torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, "
                      "ScalarType output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor"},
          .summary = "quantises blocks of elements, each with its scale and zero point",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,6), [1,6], u(0.01,0.1,2), i(-9,9,2), i8, -128, 127 # half=off: another quantised value where "
                     "one in half precision lies between two",
                     "x(4,8), [1,4], u(0.1,0.5,4,2), i(0,1,4,2), i8, -8, 7 # half=off: another quantised value where "
                     "one in half precision lies between two",
                     "x(3,4), [3,4], u(0.01,0.1,1), i8(-9,9,1), i8 # half=off: another quantised value where one in "
                     "half precision lies between two"}};
}
}  // namespace tosaic
