// SPDX-License-Identifier: Apache-2.0
// From the number of an element to where it lies in tensors that are walked by strides. Dims that all of them walk as
// one are one; sizes and strides are parameters.
#pragma once
#include <optional>

#include "shaders/kernel.h"

namespace tosaic::shaders {

class Positions {
 public:
  // strides[t] has one for each dim of `dims`; `index` counts their positions in row-major order.
  Positions(Kernel& kernel, const std::vector<std::int64_t>& dims, std::vector<std::vector<std::int64_t>> strides,
            Value index);
  // The element of tensor t, counted from the walk's beginning.
  Value of(std::size_t t);

 private:
  void merge();
  Value coordinate(std::size_t dim);

  Kernel& kernel_;
  std::vector<std::int64_t> dims_;
  std::vector<std::vector<std::int64_t>> strides_;
  Value index_;
  std::vector<Value> coordinates_;  // empty: not asked for yet
};

}  // namespace tosaic::shaders
