// SPDX-License-Identifier: Apache-2.0
// TensorType: dtype, shape, and, when the tensor is quantised, how its integers stand for real numbers.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "ir/dtype.h"

namespace tosaic {

// Dims, outermost first. A number is asked for by size(), sizes() and elements(): UnknownSize where a dim is symbolic.
class Shape {
 public:
  Shape() = default;
  Shape(std::vector<std::int64_t> sizes);
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::vector<Dim> dims);

  int rank() const { return static_cast<int>(sizes_.size()); }
  Dim operator[](int i) const {
    return symbolic_ ? (*symbolic_)[static_cast<std::size_t>(i)] : Dim(sizes_[static_cast<std::size_t>(i)]);
  }
  void set(int i, const Dim& dim);
  std::vector<Dim> dims() const;

  // Whether every dim is a number.
  bool is_static() const { return symbolic_ == nullptr; }
  std::int64_t size(int i) const { return symbolic_ ? (*this)[i].value() : sizes_[static_cast<std::size_t>(i)]; }
  const std::vector<std::int64_t>& sizes() const {
    if (symbolic_) unknown();
    return sizes_;
  }
  std::int64_t elements() const;  // 1 for rank 0
  // A dim is 0 whatever the symbols are.
  bool is_empty() const;
  // Each dim at its upper bound; nothing where one has none.
  std::optional<Shape> upper() const;
  bool operator==(const Shape& other) const;

 private:
  [[noreturn]] void unknown() const;
  std::vector<std::int64_t> sizes_;  // a symbolic dim: 0
  std::shared_ptr<const std::vector<Dim>> symbolic_;
};

// real = scale[c] * (q - zero_point[c]); c is the index along `axis`, or 0 when per tensor. Channels split over
// two neighbouring dims (depthwise weights, HWCM) count along both, `axis` being the first.
struct Scales {
  std::vector<double> scale{1.0};
  std::vector<std::int64_t> zero_point{0};
  int axis = -1;                         // -1: per tensor
  std::int64_t lowest = 0, highest = 0;  // the quantised values in use; both 0: the dtype's whole range
  bool per_tensor() const { return axis < 0; }
  bool operator==(const Scales&) const = default;
};

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Scales> scales;

  bool quantised() const { return scales.has_value(); }
  int rank() const { return shape.rank(); }
  std::size_t storage_bytes() const { return static_cast<std::size_t>(shape.elements()) * storage_size(dtype); }
  TensorType with(DType d) const;
  TensorType with(Shape s) const;
  TensorType with(std::optional<Scales> s) const;
  bool operator==(const TensorType&) const = default;
};

// The quantised values that `type` may hold: its scales' own bounds, or the dtype's.
IntegerRange quantised_range(const TensorType& type);

std::string to_string(const Shape& shape);      // "1x3x224x224", "(s77 in 1..16)x4", "" for rank 0
std::string to_string(const TensorType& type);  // "1x8x8x3xi8<0.02:3>", "f32"
// The shortest text that reads back as the same double.
std::string to_string(double value);

}  // namespace tosaic
