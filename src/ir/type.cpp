// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

#include "base/exceptions.h"

namespace tosaic {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 20> dtype_names{
    {{DType::boolean, "bool"},  {DType::i4, "i4"},         {DType::i8, "i8"},         {DType::u8, "u8"},
     {DType::i16, "i16"},       {DType::i32, "i32"},       {DType::i48, "i48"},       {DType::i64, "i64"},
     {DType::f16, "f16"},       {DType::bf16, "bf16"},     {DType::f32, "f32"},       {DType::f64, "f64"},
     {DType::f8e4m3, "f8e4m3"}, {DType::f8e5m2, "f8e5m2"}, {DType::shape, "shape"},   {DType::f4e2m1, "f4e2m1"},
     {DType::f6e2m3, "f6e2m3"}, {DType::f6e3m2, "f6e3m2"}, {DType::mxint8, "mxint8"}, {DType::f8ue8m0, "f8ue8m0"}}};
}  // namespace

std::string_view name_of(DType type) {
  for (auto [t, name] : dtype_names)
    if (t == type) return name;
  return "?";
}

std::optional<DType> dtype_named(std::string_view name) {
  for (auto [t, n] : dtype_names)
    if (n == name) return t;
  return std::nullopt;
}

Shape::Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}
Shape::Shape(std::initializer_list<std::int64_t> sizes) : sizes_(sizes) {}
Shape::Shape(std::vector<Dim> dims) {
  sizes_.reserve(dims.size());
  bool symbols = false;
  for (const Dim& d : dims) {
    sizes_.push_back(d.is_number() ? d.value() : 0);
    symbols = symbols || !d.is_number();
  }
  if (symbols) symbolic_ = std::make_shared<const std::vector<Dim>>(std::move(dims));
}

void Shape::set(int i, const Dim& dim) {
  if (!symbolic_ && dim.is_number()) {
    sizes_[static_cast<std::size_t>(i)] = dim.value();
    return;
  }
  auto all = dims();
  all[static_cast<std::size_t>(i)] = dim;
  *this = Shape(std::move(all));
}

std::vector<Dim> Shape::dims() const { return symbolic_ ? *symbolic_ : std::vector<Dim>(sizes_.begin(), sizes_.end()); }

void Shape::unknown() const {
  raise(UnknownSize("the shape " + to_string(*this) + " is known only when the program runs"));
}

std::int64_t Shape::elements() const {
  std::uint64_t n = 1;  // what is empty may have dims whose product is beyond 64 bits
  for (auto d : sizes()) n *= static_cast<std::uint64_t>(d);
  return static_cast<std::int64_t>(n);
}

bool Shape::is_empty() const {
  const auto all = dims();
  return std::any_of(all.begin(), all.end(), [](const Dim& d) { return d == Dim(0); });
}

std::optional<Shape> Shape::upper() const {
  Shape r = *this;
  for (int i = 0; i < rank(); ++i) {
    const auto highest = (*this)[i].bounds().highest;
    if (!highest) return std::nullopt;
    r.set(i, *highest);
  }
  return r;
}

bool Shape::operator==(const Shape& other) const {
  if (sizes_ != other.sizes_) return false;
  if (symbolic_ == other.symbolic_) return true;
  return symbolic_ && other.symbolic_ && *symbolic_ == *other.symbolic_;
}

TensorType TensorType::with(DType d) const {
  TensorType t = *this;
  t.dtype = d;
  return t;
}
TensorType TensorType::with(Shape s) const {
  TensorType t = *this;
  t.shape = std::move(s);
  return t;
}
TensorType TensorType::with(std::optional<Scales> s) const {
  TensorType t = *this;
  t.scales = std::move(s);
  return t;
}

IntegerRange quantised_range(const TensorType& type) {
  if (type.scales && (type.scales->lowest != 0 || type.scales->highest != 0))
    return {type.scales->lowest, type.scales->highest};
  return range_of(type.dtype);
}

std::string to_string(double value) { return fmt::format("{}", value); }

std::string to_string(const Shape& shape) {
  std::string out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out += "x";
    out += ranged_text(shape[i]);
  }
  return out;
}

std::string to_string(const TensorType& type) {
  std::string out = to_string(type.shape);
  if (type.rank() > 0) out += "x";
  out += name_of(type.dtype);
  if (const auto& s = type.scales) {
    out += "<";
    for (std::size_t i = 0; i < s->scale.size(); ++i)
      out += fmt::format("{}{}:{}", i ? "," : "", to_string(s->scale[i]), s->zero_point[i]);
    if (!s->per_tensor()) out += fmt::format(" axis {}", s->axis);
    if (s->lowest != 0 || s->highest != 0) out += fmt::format(" in {}..{}", s->lowest, s->highest);
    out += ">";
  }
  return out;
}

}  // namespace tosaic
