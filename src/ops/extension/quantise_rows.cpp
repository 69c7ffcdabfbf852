// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/extension.h"
#include "ops/definitions/row.h"

namespace tosaic::extension {
namespace {

using namespace quantise_rows;

constexpr double lowest = -128, highest = 127;

Shape without_last(const Shape& shape) {
  std::vector<std::int64_t> sizes = shape.sizes();
  sizes.pop_back();
  return sizes;
}

std::vector<TensorType> infer(const tosa::View& view) {
  const TensorType& rows = view.in(input);
  TensorType each = rows;
  each.shape.set(rows.rank() - 1, 1);
  return {rows.with(DType::i8), each, each};
}

// Of floats, the whole numbers that are nearest.
ValueId rounded(Definition& d, ValueId x) { return d.cast(d.cast(x, DType::i32), d.type(x).dtype); }
// Of floats that are whole already, as PyTorch casts: towards zero.
ValueId truncated(Definition& d, ValueId x) {
  const TensorType type = d.type(x);
  const ValueId positive =
      d.call(tosa::op::greater_equal, {x, d.number(type.dtype, type.rank(), 0)}, type.with(DType::boolean));
  return d.select(positive, d.unary(tosa::op::floor, x), d.unary(tosa::op::ceil, x));
}

std::vector<ValueId> to_tosa(Definition& d) {
  const ValueId x = d.operand(input);
  const TensorType all = d.type(x);
  const std::int64_t last = all.rank() - 1;
  TensorType each = all;  // a number for each row
  each.shape.set(static_cast<int>(last), 1);
  const bool keeps = d.node().attrs.get<bool>(keeps_dim);
  const Shape inner = keeps ? each.shape : without_last(all.shape);
  const auto number = [&](double value) { return d.number(all.dtype, inner.rank(), value); };
  const ValueId least = d.clamp(d.shaped(d.reduce(tosa::op::reduce_min, x, last), inner), -Definition::infinity, 0);
  const ValueId most = d.clamp(d.shaped(d.reduce(tosa::op::reduce_max, x, last), inner), 0);
  const ValueId scale =
      d.clamp(d.mul(d.sub(most, least), number(1 / (highest - lowest))), d.node().attrs.get<double>(least_scale));
  const ValueId inverse = d.unary(tosa::op::reciprocal, scale);
  const ValueId at_0 = d.number(all.dtype, 1, 0);
  const ValueId steps = rounded(d, d.mul(least, inverse));
  const ValueId zero =
      d.clamp(d.add(d.call(tosa::op::negate, {steps, at_0, at_0}, d.type(steps)), number(lowest)), lowest, highest);
  const ValueId whole = d.cast(truncated(d, zero), DType::i8);
  const ValueId scales = d.shaped(scale, each.shape);
  const ValueId zeros = d.shaped(d.cast(whole, all.dtype), each.shape);
  const ValueId scaled = d.mul(x, keeps ? inverse : d.unary(tosa::op::reciprocal, scales));
  const ValueId q = d.clamp(d.add(rounded(d, scaled), zeros), lowest, highest);
  return {d.cast(q, DType::i8), scales, zeros};
}

// As quantise/weight_quantisation.cpp has it, and as torchao does.
std::vector<Form> forms(const Ending& ending) {
  const TensorType& result = ending.result;
  if (ending.op != tosa::op::cast || result.dtype != DType::i8 || result.rank() < 2) return {};
  const TensorType all = result.with(DType::f32);
  TensorType each = all;
  each.shape.set(all.rank() - 1, 1);
  std::vector<Form> made;
  for (const double least : {0x1p-23, 0x1p-126})
    for (const bool keeps : {true, false})
      made.push_back({{all}, {{least_scale, least}, {keeps_dim, keeps}}, {result, each, each}});
  return made;
}

}  // namespace

Op extension_quantise_rows() {
  return {.row = {.name = "quantise_rows",
                  .schema_number = 0,
                  .spirv_number = 0xffff,
                  .summary = "rows of floats as int8, with a scale and a zero point for each row from its least and "
                             "greatest element",
                  .inputs = {{"input", "real", 2}},
                  .attrs = {{least_scale, tosa::AttrKind::number}, {keeps_dim, tosa::AttrKind::boolean}},
                  .outputs = {{"quantised", "i8", 2}, {"scale", "real", 2}, {"zero", "real", 2}},
                  .types = {{{}, {{"real", DType::f32}}}},
                  .infer = infer},
          .to_tosa = to_tosa,
          .forms = forms};
}

}  // namespace tosaic::extension
