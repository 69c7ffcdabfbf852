// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The least normal number of the dtype.
double least_scale(DType type) { return type == DType::f16 ? 0x1p-14 : 0x1p-126; }

// One scale and zero point for each row of the last dim: what dynamic quantisation asks for.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  auto blocks = call.ints("block_size");
  std::vector<std::int64_t> rows(static_cast<std::size_t>(x.rank()), 1);
  if (!rows.empty()) rows.back() = x.dim(-1);
  if (rows.empty() || blocks != rows)
    b.refuse("aten.choose_qparams_affine.blocks", "blocks that are no rows of the last dim");
  if (call.text("mapping_type") != "ASYMMETRIC" || !call.has("quant_min") || !call.has("quant_max"))
    b.refuse("aten.choose_qparams_affine.mapping",
             "scales by '" + call.text("mapping_type") + "', or without bounds: only ASYMMETRIC with bounds is taken");
  const double lowest = call.number("quant_min"), highest = call.number("quant_max");
  const int last = x.rank() - 1;
  const bool keep = call.flag("keepdim");
  Val least = b.aten("aten.clamp.default", {calls::amin(x, {last}, keep)}, {{"max", 0.0}});
  Val most = calls::at_least(calls::amax(x, {last}, keep), 0.0);
  Val scale = b.aten("aten.div.Scalar", {calls::sub(most, least)}, {{"other", highest - lowest}});
  scale = calls::at_least(scale, call.has("eps") ? call.number("eps") : least_scale(x.dtype()));
  Val zero = calls::unary("round", b.aten("aten.div.Tensor", {least, scale}));
  zero = calls::clamp(calls::add(calls::unary("neg", zero), lowest), lowest, highest);
  return {b.aten("aten._to_copy.default", {scale}, {{"dtype", call.dtype("scale_dtype").value_or(x.dtype())}}),
          b.aten("aten._to_copy.default", {zero}, {{"dtype", call.dtype("zero_point_dtype").value_or(DType::i32)}})};
}
}  // namespace

AtenOp aten_choose_qparams_affine() {
  return {
      .schemas = {"torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType "
                  "target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? "
                  "scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)"},
      .summary = "scale and zero point of each row, from its least and greatest element",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"x(2,6), 'ASYMMETRIC', [1,6], i8, -128, 127 # half=off: another zero point where a half float lies "
                 "between two",
                 "x(3,8), 'ASYMMETRIC', [1,8], i8, -128, 127, 1e-5, f32, i32 # half=off: another zero point where a "
                 "half float lies between two"}};
}
}  // namespace tosaic
