// SPDX-License-Identifier: Apache-2.0
// Sums of products of i16 inputs, which may be anything, and constant 8-bit weights: how much of them fits i32.
#pragma once
#include <cstdint>
#include <span>

namespace tosaic::cpu {

// Those of column j are at data[j * column_stride + i * k_stride], less the zero point.
struct ShortWeights {
  const std::int8_t* data;
  std::int64_t columns, k, column_stride, k_stride;
  std::int32_t zero_point;
};

class ShortSums {
 public:
  ShortSums(const ShortWeights& weights, std::span<const std::int64_t> bias);

  // Whole sums with their biases do.
  bool fit_i32() const { return fit_i32_; }
  // Sums without biases of so many products from each multiple of it on do; even.
  std::int64_t stretch() const { return stretch_; }

 private:
  bool fit_i32_ = true;
  std::int64_t stretch_ = 0;
};

}  // namespace tosaic::cpu
