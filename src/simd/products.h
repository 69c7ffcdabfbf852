// SPDX-License-Identifier: Apache-2.0
// Products of matrices of doubles whose results are the same to the last bit on every machine: each sum adds its
// products in order, and rounds each of them.
#pragma once
#include <cstddef>

namespace tosaic::simd {

struct DoubleMatrix {
  const double* first;
  std::size_t by_row, by_column;  // how far apart neighbours are
};

// to[i][j] -= a[0][i] * b[0][j], then a[1][i] * b[1][j], ..., a[count - 1][i] * b[count - 1][j]. Rows of `to` are
// `by_row` apart, elements of rows of b and `to` are neighbours.
void subtract_products(double* to, std::size_t by_row, std::size_t rows, std::size_t columns, std::size_t count,
                       DoubleMatrix a, const double* b, std::size_t b_by_row);

}  // namespace tosaic::simd
