// SPDX-License-Identifier: Apache-2.0
// TensorType: dtype, shape, and, when the tensor is quantised, how its integers stand for real numbers.
#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tosaic {

// A dimension that is not a number: an expression over bounded symbols, as PyTorch wrote it.
struct SymbolicDim {
  std::string expression;  // "s77", "2*s77 + 1"; empty: this dim is a plain number
  std::int64_t lowest = 0, highest = 0;
  bool operator==(const SymbolicDim&) const = default;
};

// Dims, outermost first. A symbolic dim counts as its upper bound wherever a number is needed.
class Shape {
 public:
  Shape() = default;
  Shape(std::vector<std::int64_t> dims);
  Shape(std::initializer_list<std::int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) { return dims_[static_cast<std::size_t>(i)]; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  std::int64_t elements() const;  // 1 for rank 0
  bool is_static() const { return symbols_ == nullptr; }
  // nullptr for a plain number.
  const SymbolicDim* symbol(int i) const;
  void set_symbol(int i, SymbolicDim symbol);
  bool operator==(const Shape& other) const;

 private:
  std::vector<std::int64_t> dims_;
  std::shared_ptr<const std::vector<SymbolicDim>> symbols_;
};

// real = scale[c] * (q - zero_point[c]); c is the index along `axis`, or 0 when per tensor. Channels split over
// two neighbouring dims (depthwise weights, HWCM) count along both, `axis` being the first.
struct Scales {
  std::vector<double> scale{1.0};
  std::vector<std::int64_t> zero_point{0};
  int axis = -1;                         // -1: per tensor
  std::int64_t lowest = 0, highest = 0;  // the codes in use; both 0: the dtype's whole range
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

// The codes that `type` may hold: its scales' own bounds, or the dtype's.
IntegerRange codes_of(const TensorType& type);

std::string to_string(const Shape& shape);      // "1x3x224x224", "" for rank 0
std::string to_string(const TensorType& type);  // "1x8x8x3xi8<0.02:3>", "f32"
// The shortest text that reads back as the same double.
std::string to_string(double value);

}  // namespace tosaic
