// SPDX-License-Identifier: Apache-2.0
#include "shaders/strides.h"

#include <algorithm>

namespace tosaic::shaders {

// Dims of one position go; neighbours that every tensor walks as one become one.
Walk::Walk(const std::vector<Dim>& dims, const std::vector<std::vector<Dim>>& strides) : strides_(strides.size()) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == Dim(1)) continue;
    bool joins = !dims_.empty();
    for (std::size_t t = 0; t < strides.size() && joins; ++t) joins = strides_[t].back() == strides[t][d] * dims[d];
    if (joins)
      dims_.back() = dims_.back() * dims[d];
    else
      dims_.push_back(dims[d]);
    for (std::size_t t = 0; t < strides.size(); ++t) {
      if (joins)
        strides_[t].back() = strides[t][d];
      else
        strides_[t].push_back(strides[t][d]);
    }
  }
}

bool Walk::is_quad(std::size_t t) const {
  const auto& strides = strides_[t];
  return step(t) == Dim(1) &&
         std::all_of(strides.begin(), strides.end() - 1, [](const Dim& s) { return is_multiple(s, 4); });
}

Value Positions::coordinate(std::size_t dim) {
  const auto& dims = walk_.dims();
  if (coordinates_.empty()) {
    coordinates_.resize(dims.size());
    Value rest = index_;
    for (std::size_t d = dims.size(); d-- > 1;) {
      const Value size = kernel_.param(dims[d]);
      coordinates_[d] = rest % size;
      rest = rest / size;
    }
    coordinates_[0] = rest;
  }
  return coordinates_[dim];
}

Value Positions::of(std::size_t t) {
  const auto& strides = walk_.strides(t);
  std::optional<Value> sum;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == Dim(0)) continue;
    Value term = strides.size() == 1 ? index_ : coordinate(d);
    if (strides[d] != Dim(1)) term = term * kernel_.param(strides[d]);
    sum = sum ? *sum + term : term;
  }
  return sum ? *sum : kernel_.integer(0);
}

}  // namespace tosaic::shaders
