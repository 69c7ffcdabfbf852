// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/blocks.h"
#include "ops/lowering/functions.h"

namespace tosaic {
namespace {
// The least normal number of the dtype.
double least_scale(DType type) { return type == DType::f16 ? 0x1p-14 : 0x1p-126; }

struct Chosen {
  Val scale, zero;
};

Chosen asymmetric(Builder& b, Val least, Val most, const tosa::Bounds& range, double eps) {
  Val scale = b.aten(aten::op::div_Scalar, {calls::sub(most, least)}, {{"other", range.highest - range.lowest}});
  scale = calls::at_least(scale, eps);
  // As many quantised values at most as there are.
  Val zero = b.cast(functions::rounded(b.aten(aten::op::div_Tensor, {least, scale}), DType::i32), scale.dtype());
  return {scale,
          calls::clamp(calls::add(calls::unary(aten::op::neg, zero), range.lowest), range.lowest, range.highest)};
}

// The zero point is the middle quantised value; `clips`: the outermost quantised value on the shorter side may be
// missed by half a step.
Chosen symmetric(Builder& b, Val least, Val most, const tosa::Bounds& range, double eps, bool clips) {
  const auto over = [&](Val v, double by) { return b.aten(aten::op::div_Scalar, {v}, {{"other", by}}); };
  Val scale;
  if (clips)
    scale =
        over(b.aten(aten::op::maximum, {calls::unary(aten::op::neg, least), most}), (range.highest - range.lowest) / 2);
  else
    scale = b.aten(aten::op::maximum, {over(least, range.lowest), over(most, range.highest)});
  scale = calls::at_least(scale, eps);
  const double middle = std::trunc((range.highest + range.lowest + 1) / 2);
  return {scale, b.aten(aten::op::full_like, {scale}, {{"fill_value", middle}})};
}

// A scale and a zero point for each block.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const Blocks blocks = blocks_of(call, x);
  const tosa::Bounds range = quantised_range(call, call.dtype("target_dtype").value_or(DType::i8));
  const double eps = call.has("eps") ? call.number("eps") : least_scale(x.dtype());
  const bool keep = call.flag("keepdim");
  Val in_blocks = calls::view(x, blocks.split);
  Val least = b.aten(aten::op::clamp, {calls::amin(in_blocks, blocks.inner, keep)}, {{"max", 0.0}});
  Val most = calls::at_least(calls::amax(in_blocks, blocks.inner, keep), 0.0);
  const std::string mapping = call.text("mapping_type");
  Chosen chosen;
  if (mapping == "ASYMMETRIC")
    chosen = asymmetric(b, least, most, range, eps);
  else if (mapping == "SYMMETRIC" || mapping == "SYMMETRIC_NO_CLIPPING_ERR")
    chosen = symmetric(b, least, most, range, eps, mapping == "SYMMETRIC");
  else
    b.refuse("aten.choose_qparams_affine.mapping",
             "scales by '" + mapping + "': ASYMMETRIC, SYMMETRIC and SYMMETRIC_NO_CLIPPING_ERR are taken");
  auto& [scale, zero] = chosen;
  if (keep) {
    scale = calls::view(scale, blocks.counts);
    zero = calls::view(zero, blocks.counts);
  }
  const DType whole = mapping == "ASYMMETRIC" ? DType::i32 : x.dtype();  // torchao's defaults
  return {b.aten(aten::op::_to_copy, {scale}, {{"dtype", call.dtype("scale_dtype").value_or(x.dtype())}}),
          b.aten(aten::op::_to_copy, {zero}, {{"dtype", call.dtype("zero_point_dtype").value_or(whole)}})};
}
}  // namespace

AtenOp aten_choose_qparams_affine() {
  return {.schemas = {"torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType "
                      "target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? "
                      "scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)"},
          .summary = "scale and zero point of each block, from its least and greatest element",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,6), 'ASYMMETRIC', [1,6], i8, -128, 127 # half=off: another zero point where a value in half "
                     "precision lies between two",
                     "x(3,8), 'ASYMMETRIC', [1,8], i8, -128, 127, 1e-5, f32, i32 # half=off: another zero point where "
                     "a value in half precision lies between two",
                     "x(3,8), 'SYMMETRIC', [1,8], i8, None, None, 1e-5, f32, i8",
                     "x(3,8), 'SYMMETRIC', [1,4], i8, -127, 127, None, None, i8, True",
                     "x(4,6), 'SYMMETRIC_NO_CLIPPING_ERR', [2,3], i8, -8, 7, None, f32, i32"}};
}
}  // namespace tosaic
