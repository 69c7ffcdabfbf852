// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/block_scaled.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/definitions/block_rounding.h"

namespace tosaic::tosa::block_scaled {
namespace {
using extension::Definition;

constexpr std::array<Form, 6> forms{{{DType::f8e4m3, 3, -6, 8, 448},
                                     {DType::f8e5m2, 2, -14, 15, 57344},
                                     {DType::f6e2m3, 3, 0, 2, 7.5},
                                     {DType::f6e3m2, 2, -2, 4, 28},
                                     {DType::f4e2m1, 1, 0, 2, 6},
                                     {DType::mxint8, 6, 0, 0, MxInt8::greatest}}};

Shape in_blocks(const Shape& shape) {
  const std::int64_t row = shape.size(shape.rank() - 1);
  return {shape.elements() / row, row / block, block};
}

// Of a definition, on three dims.
struct DefinitionWords {
  using Value = ValueId;
  Definition& d;

  ValueId number(double value, ValueId) { return d.number(DType::f32, 3, value); }
  ValueId abs(ValueId v) { return d.unary(op::abs, v); }
  ValueId greatest_of_block(ValueId v) { return d.reduce(op::reduce_max, v, 2); }
  ValueId greater(ValueId a, ValueId b) { return d.call(op::greater, {a, b}, d.type(a).with(DType::boolean)); }
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return d.call(op::select, {condition, a, b}, d.type(condition).with(DType::f32));
  }
  ValueId add(ValueId a, ValueId b) { return d.add(a, b); }
  ValueId sub(ValueId a, ValueId b) { return d.sub(a, b); }
  ValueId mul(ValueId a, ValueId b) { return d.mul(a, b); }
  ValueId cast(ValueId v, DType to) { return d.cast(v, to); }
  ValueId clamp_or_nan_to_least(ValueId v, double most) {
    return d.call(op::clamp, {v}, d.type(v),
                  {{"min_val", -most}, {"max_val", most}, {"nan_mode", std::string("ignore")}});
  }
};
}  // namespace

TypeRows elements(std::string_view variable) {
  TypeRows result;
  for (const Form& form : forms) result.push_back({{Feature::mxfp}, {{variable, form.type}}});
  return result;
}

TypeRows elements_and_floats(std::string_view variable, std::string_view real) {
  TypeRows of_bf16 = with(elements(variable), real, DType::bf16);
  for (TypeRow& row : of_bf16) row.and_needs = Feature::bf16;
  return with(elements(variable), real, DType::f32) + with(elements(variable), real, DType::f16) + of_bf16;
}

Shape scales_shape(const Shape& elements) {
  Shape shape = elements;
  const int last = shape.rank() - 1;
  shape.set(last, floor_div(shape[last], Dim(block)));
  return shape;
}

Check check(const View& view, std::size_t elements, std::size_t scales) {
  const std::string_view op = view.node().op.base();
  if (view.integer(size) != block)
    return broken(fmt::format("{}.block-size", op), "blocks of {}: TOSA has blocks of {}", view.integer(size), block);
  const Shape& shape = view.in(elements).shape;
  const Dim& last = shape[shape.rank() - 1];
  if (last.is_number() && last.value() % block != 0)
    return broken(fmt::format("{}.blocks", op), "rows of {} are no whole blocks of {}", to_string(last), block);
  if (scales != elements && view.in(scales).shape != scales_shape(shape))
    return broken(fmt::format("{}.blocks", op), "elements of shape [{}] have scales of shape [{}], not [{}]",
                  to_string(shape), to_string(scales_shape(shape)), to_string(view.in(scales).shape));
  return std::nullopt;
}

const Form& form_of(DType element) { return *std::ranges::find(forms, element, &Form::type); }

int exponent_for(double largest, DType element) {
  if (largest == 0) return least_scale;
  int exponent, of_greatest;
  const double part = std::frexp(largest, &exponent),
               part_of_greatest = std::frexp(form_of(element).greatest, &of_greatest);
  return std::clamp(exponent - of_greatest + (part > part_of_greatest ? 1 : 0), least_scale, -least_scale);
}

std::vector<double> as_doubles(const TensorView& elements, const TensorView& scales) {
  std::vector<double> result(static_cast<std::size_t>(elements.type.shape.elements()));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = element_as_double(elements.type.dtype, elements.data, i) *
                element_as_double(scales.type.dtype, scales.data, i / block);
  return result;
}

ValueId as_floats(Definition& d, ValueId elements, ValueId scales) {
  const auto wide = [&](ValueId v) { return d.type(v).dtype == DType::f32 ? v : d.cast(v, DType::f32); };
  const Shape shape = d.type(elements).shape, grouped = in_blocks(shape);
  const ValueId by_block = d.shaped(wide(scales), {grouped.size(0), grouped.size(1), 1});
  return d.shaped(d.mul(d.shaped(wide(elements), grouped), by_block), shape);
}

Rounded rounded(Definition& d, ValueId x, DType element) {
  const Shape shape = d.type(x).shape;
  if (d.type(x).dtype != DType::f32) x = d.cast(x, DType::f32);
  const auto [elements, scale] =
      Rounding(DefinitionWords{d})(d.shaped(x, in_blocks(shape)), element, !is_of_blocks(element));
  return {d.shaped(elements, shape), d.shaped(scale, scales_shape(shape))};
}

DType carrier(DType type) {
  switch (type) {
    case DType::f4e2m1:
    case DType::f6e2m3:
    case DType::f6e3m2: return DType::f8e4m3;
    case DType::mxint8:
    case DType::f8ue8m0: return DType::bf16;
    default: return type;
  }
}

}  // namespace tosaic::tosa::block_scaled
