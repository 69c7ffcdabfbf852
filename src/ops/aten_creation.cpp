// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_creation.h"

#include <fmt/format.h>
#include <cmath>

#include "ir/tensor.h"
#include "ops/aten_promotion.h"

namespace tosaic::creation {

DType dtype_of(const Call& call, DType otherwise) {
  if (auto asked = call.dtype("dtype")) return promotion::narrowed(*asked);
  if (!call.declared().empty()) return promotion::narrowed(call.declared()[0].dtype);
  return promotion::narrowed(otherwise);
}

DType dtype_of_number(const Call& call, std::string_view name) {
  return call.is_float_scalar(name) ? DType::f32 : DType::i32;
}

DType dtype_of_tensor(Val x) { return x.type().quantised() ? DType::f32 : x.dtype(); }

void check_count(const Call& call, double elements) {
  if (!(elements <= 268435456.0))
    call.builder().refuse("aten.too-large", fmt::format("{} makes {} elements", call.schema().full_name(), elements));
}

void check_size(const Call& call, const Shape& shape) {
  double elements = 1;
  for (auto d : shape) {
    if (d < 0) call.builder().refuse("aten.negative-size", fmt::format("{} of size {}", call.schema().full_name(), d));
    elements *= static_cast<double>(d);
  }
  check_count(call, elements);
}

Val filled(const Call& call, double value, DType otherwise, const Shape& shape) {
  const DType dtype = dtype_of(call, otherwise);
  if (dtype == DType::boolean) value = value != 0;
  if (is_integer(dtype)) value = std::trunc(value);
  check_size(call, shape);
  return call.builder().filled(value, dtype, shape);
}

Val vector(const Call& call, std::span<const double> values, DType dtype) {
  return call.builder().constant({dtype, Shape{static_cast<std::int64_t>(values.size())}, std::nullopt},
                                 constant_bytes(dtype, values));
}

}  // namespace tosaic::creation
