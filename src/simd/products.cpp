// SPDX-License-Identifier: Apache-2.0
#include "simd/products.h"

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// A tile of `to`, ROWS by VECTORS, is kept in registers while all products are taken off.
template <std::size_t ROWS, std::size_t VECTORS, class D>
void subtract_from_tile(D d, double* to, std::size_t by_row, std::size_t count, DoubleMatrix a, const double* b,
                        std::size_t b_by_row) {
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sums[ROWS][VECTORS];
  for (std::size_t i = 0; i < ROWS; ++i)
    for (std::size_t v = 0; v < VECTORS; ++v) sums[i][v] = hn::LoadU(d, to + i * by_row + v * lanes);
  for (std::size_t r = 0; r < count; ++r) {
    const double* factors = a.first + r * a.by_row;
    hn::Vec<D> row[VECTORS];
    for (std::size_t v = 0; v < VECTORS; ++v) row[v] = hn::LoadU(d, b + r * b_by_row + v * lanes);
    for (std::size_t i = 0; i < ROWS; ++i) {
      const auto factor = hn::Set(d, factors[i * a.by_column]);
      for (std::size_t v = 0; v < VECTORS; ++v) sums[i][v] = hn::Sub(sums[i][v], hn::Mul(factor, row[v]));
    }
  }
  for (std::size_t i = 0; i < ROWS; ++i)
    for (std::size_t v = 0; v < VECTORS; ++v) hn::StoreU(sums[i][v], d, to + i * by_row + v * lanes);
}

template <std::size_t ROWS>
void subtract_from_rows(double* to, std::size_t by_row, std::size_t columns, std::size_t count, DoubleMatrix a,
                        const double* b, std::size_t b_by_row) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes)
    subtract_from_tile<ROWS, 2>(d, to + j, by_row, count, a, b + j, b_by_row);
  for (; j + lanes <= columns; j += lanes) subtract_from_tile<ROWS, 1>(d, to + j, by_row, count, a, b + j, b_by_row);
  for (; j < columns; ++j) subtract_from_tile<ROWS, 1>(one, to + j, by_row, count, a, b + j, b_by_row);
}

}  // namespace

void subtract_products_here(double* to, std::size_t by_row, std::size_t rows, std::size_t columns, std::size_t count,
                            DoubleMatrix a, const double* b, std::size_t b_by_row) {
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    subtract_from_rows<4>(to + i * by_row, by_row, columns, count, a, b, b_by_row);
    a.first += 4 * a.by_column;
  }
  for (; i < rows; ++i) {
    subtract_from_rows<1>(to + i * by_row, by_row, columns, count, a, b, b_by_row);
    a.first += a.by_column;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::simd {

HWY_EXPORT(subtract_products_here);
void subtract_products(double* to, std::size_t by_row, std::size_t rows, std::size_t columns, std::size_t count,
                       DoubleMatrix a, const double* b, std::size_t b_by_row) {
  HWY_DYNAMIC_DISPATCH(subtract_products_here)(to, by_row, rows, columns, count, a, b, b_by_row);
}

}  // namespace tosaic::simd
#endif
