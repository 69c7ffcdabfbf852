// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers by matrices of subgroups, which multiply them as they are. With zero points a and b, the
// sum over k of (x - a)(w - b) is that of xw, less b times the sum of the row's x and a times that of the column's w,
// plus ab for each k: the sums of rows and columns are products by ones.
#pragma once
#include "shaders/kernel.h"

namespace tosaic::shaders {

// Of both factors; none: 0.
struct ProductZeroPoints {
  std::optional<Value> left, right;
  Value depth;  // how many products a sum has
  // Of a MATMUL of i8, as parameters.
  ProductZeroPoints() = default;
  ProductZeroPoints(Kernel& s, const tosa::View& matmul, Value all_depth) : depth(all_depth) {
    const auto number_of = [&](std::size_t operand) {
      const std::int64_t number = matmul.constant_integers(operand)->at(0);
      return number == 0 ? std::nullopt : std::optional(s.param(number));
    };
    left = number_of(2);
    right = number_of(3);
  }
  // What all products have in common.
  Value product() const { return *left * *right * depth; }
};

// Factors of ones, in memory that the group shares. They are there after the next barrier.
class MatrixOnes {
 public:
  static constexpr std::uint32_t vectors = 2, bytes = 16 * vectors;
  explicit MatrixOnes(Kernel& s) : s_(s), ones_(s.shared(Kind::integer, vectors)) {
    const Value place = s.local() % s.integer(vectors);
    s.when(s.local() < vectors, [&] { s.store(ones_, place, s.splat(s.integer(0x01010101))); });
  }
  Matrix load(spirv::MatrixUse use) const {
    return s_.load_matrix(ones_, s_.integer(0), 0, use, use == spirv::MatrixUse::right, MatrixOf::int8);
  }

 private:
  Kernel& s_;
  const Shared ones_;
};

}  // namespace tosaic::shaders
