// SPDX-License-Identifier: Apache-2.0
// From the number of an element to where it lies in tensors that are walked by strides. Dims that all of them walk as
// one are one; sizes and strides are parameters, and may be symbolic.
#pragma once
#include <optional>

#include "shaders/kernel.h"

namespace tosaic::shaders {

class Walk {
 public:
  // strides[t] has one for each dim of `dims`.
  Walk(const std::vector<Dim>& dims, const std::vector<std::vector<Dim>>& strides);
  const std::vector<Dim>& dims() const { return dims_; }
  const std::vector<Dim>& strides(std::size_t t) const { return strides_[t]; }

  // Do four neighbours, the first one's number a multiple of four, always lie in one row?
  bool has_quads() const { return dims_.size() < 2 || is_multiple(dims_.back(), 4); }
  // How far apart such neighbours lie in tensor t.
  Dim step(std::size_t t) const { return dims_.empty() ? Dim(0) : strides_[t].back(); }
  // Are they a quad of tensor t?
  bool is_quad(std::size_t t) const;

 private:
  std::vector<Dim> dims_;
  std::vector<std::vector<Dim>> strides_;
};

class Positions {
 public:
  // `index` counts the walk's positions in row-major order.
  Positions(Kernel& kernel, Walk walk, Value index) : kernel_(kernel), walk_(std::move(walk)), index_(index) {}
  const Walk& walk() const { return walk_; }
  // The element of tensor t, counted from the walk's beginning.
  Value of(std::size_t t);

 private:
  Value coordinate(std::size_t dim);

  Kernel& kernel_;
  const Walk walk_;
  Value index_;
  std::vector<Value> coordinates_;  // empty: not asked for yet
};

}  // namespace tosaic::shaders
