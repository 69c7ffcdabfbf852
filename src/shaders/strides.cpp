// SPDX-License-Identifier: Apache-2.0
#include "shaders/strides.h"

#include <algorithm>

namespace tosaic::shaders {

Positions::Positions(Kernel& kernel, const std::vector<std::int64_t>& dims,
                     std::vector<std::vector<std::int64_t>> strides, Value index)
    : kernel_(kernel), dims_(dims), strides_(std::move(strides)), index_(index) {
  merge();
}

// Dims of one position go; neighbours that every tensor walks as one become one.
void Positions::merge() {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides(strides_.size());
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d] == 1) continue;
    const bool joins = !dims.empty() && std::ranges::all_of(strides_, [&](const auto& s) {
      return strides[static_cast<std::size_t>(&s - strides_.data())].back() == s[d] * dims_[d];
    });
    if (joins)
      dims.back() *= dims_[d];
    else
      dims.push_back(dims_[d]);
    for (std::size_t t = 0; t < strides_.size(); ++t) {
      if (joins)
        strides[t].back() = strides_[t][d];
      else
        strides[t].push_back(strides_[t][d]);
    }
  }
  dims_ = std::move(dims);
  strides_ = std::move(strides);
}

Value Positions::coordinate(std::size_t dim) {
  if (coordinates_.empty()) {
    coordinates_.resize(dims_.size());
    Value rest = index_;
    for (std::size_t d = dims_.size(); d-- > 1;) {
      const Value size = kernel_.param(dims_[d]);
      coordinates_[d] = rest % size;
      rest = rest / size;
    }
    coordinates_[0] = rest;
  }
  return coordinates_[dim];
}

Value Positions::of(std::size_t t) {
  const auto& strides = strides_[t];
  std::optional<Value> sum;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (strides[d] == 0) continue;
    Value term = dims_.size() == 1 ? index_ : coordinate(d);
    if (strides[d] != 1) term = term * kernel_.param(strides[d]);
    sum = sum ? *sum + term : term;
  }
  return sum ? *sum : kernel_.integer(0);
}

}  // namespace tosaic::shaders
