// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"

#include <fmt/format.h>
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ops/core_form.h"

namespace tosaic::creation {

DType dtype_of(const Call& call, DType otherwise) {
  if (auto asked = call.dtype("dtype")) return *asked;
  if (!call.declared().empty()) return call.declared()[0].dtype;
  return otherwise;
}

DType dtype_of_scalar(const Call& call, std::string_view name) {
  if (call.is_float_scalar(name)) return DType::f32;
  const double n = call.number(name);
  return n < INT32_MIN || n > INT32_MAX ? DType::i64 : DType::i32;
}

DType dtype_of_tensor(Val x) { return x.type().quantised() ? DType::f32 : x.dtype(); }

void check_count(const Call& call, double elements) {
  if (!(elements <= 268435456.0))
    call.builder().refuse("aten.too-large", fmt::format("{} makes {} elements", call.schema().full_name(), elements));
}

void check_size(const Call& call, const Shape& shape) {
  double elements = 1;
  for (auto d : shape.sizes()) {
    if (d < 0) call.builder().refuse("aten.negative-size", fmt::format("{} of size {}", call.schema().full_name(), d));
    elements *= static_cast<double>(d);
  }
  check_count(call, elements);
}

Val filled(const Call& call, double value, DType otherwise, const Shape& shape) {
  const DType dtype = dtype_of(call, otherwise);
  if (is_integer(dtype) && dtype != DType::i64 && std::isfinite(value)) {
    const IntegerRange range = range_of(dtype);
    if (value < static_cast<double>(range.lowest) || value > static_cast<double>(range.highest))
      call.builder().refuse("aten.argument-range",
                            fmt::format("{} fills {} with {}", call.schema().full_name(), name_of(dtype), value));
  }
  if (dtype == DType::boolean) value = value != 0;
  if (is_integer(dtype)) value = std::trunc(value);
  check_size(call, shape);
  return call.builder().filled(value, dtype, shape);
}

Val vector(const Call& call, std::span<const double> values, DType dtype) {
  return call.builder().constant({dtype, Shape{static_cast<std::int64_t>(values.size())}, std::nullopt},
                                 constant_bytes(dtype, values));
}

Node core_filled(const CoreCall& call, Attr value) {
  return call.call(aten::op::full, {},
                   {{"size", call.out().shape.sizes()}, {"fill_value", std::move(value)}, {"dtype", call.out().dtype}});
}

}  // namespace tosaic::creation
