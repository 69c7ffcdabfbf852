// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace tosaic {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 15> dtype_names{{{DType::boolean, "bool"},
                                                                          {DType::i4, "i4"},
                                                                          {DType::i8, "i8"},
                                                                          {DType::u8, "u8"},
                                                                          {DType::i16, "i16"},
                                                                          {DType::i32, "i32"},
                                                                          {DType::i48, "i48"},
                                                                          {DType::i64, "i64"},
                                                                          {DType::f16, "f16"},
                                                                          {DType::bf16, "bf16"},
                                                                          {DType::f32, "f32"},
                                                                          {DType::f64, "f64"},
                                                                          {DType::f8e4m3, "f8e4m3"},
                                                                          {DType::f8e5m2, "f8e5m2"},
                                                                          {DType::shape, "shape"}}};
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

Shape::Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}
Shape::Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (auto d : dims_) n *= d;
  return n;
}

const SymbolicDim* Shape::symbol(int i) const {
  if (!symbols_) return nullptr;
  const auto& s = (*symbols_)[static_cast<std::size_t>(i)];
  return s.expression.empty() ? nullptr : &s;
}

void Shape::set_symbol(int i, SymbolicDim symbol) {
  auto all = symbols_ ? *symbols_ : std::vector<SymbolicDim>(dims_.size());
  all[static_cast<std::size_t>(i)] = std::move(symbol);
  // No symbol left: the shape is static again, and equal to one that never had any.
  const bool any = std::any_of(all.begin(), all.end(), [](const SymbolicDim& s) { return !s.expression.empty(); });
  symbols_ = any ? std::make_shared<const std::vector<SymbolicDim>>(std::move(all)) : nullptr;
}

bool Shape::operator==(const Shape& other) const {
  if (dims_ != other.dims_) return false;
  if (symbols_ == other.symbols_) return true;
  return symbols_ && other.symbols_ && *symbols_ == *other.symbols_;
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

IntegerRange codes_of(const TensorType& type) {
  if (type.scales && (type.scales->lowest != 0 || type.scales->highest != 0))
    return {type.scales->lowest, type.scales->highest};
  return range_of(type.dtype);
}

std::string to_string(double value) { return fmt::format("{}", value); }

std::string to_string(const Shape& shape) {
  std::string out;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out += "x";
    if (const auto* s = shape.symbol(i))
      out += fmt::format("({} in {}..{})", s->expression, s->lowest, s->highest);
    else
      out += std::to_string(shape[i]);
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
