// SPDX-License-Identifier: Apache-2.0
// Products of doubles against one sum at a time: the same bits on every instruction set of this machine.
#include "simd/products.h"

#include <hwy/targets.h>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

TEST(Products, EverySumInOrder) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const std::int64_t set : instruction_sets()) {
    use(set);
    SCOPED_TRACE(hwy::TargetName(set));
    for (const std::size_t rows : {0, 1, 3, 4, 5, 9})
      for (std::size_t columns = 0; columns < 36; ++columns)
        for (const std::size_t count : {0, 1, 7})
          for (const bool turned : {false, true}) {
            const std::size_t by_row = columns + 3;
            std::vector<double> to(10 * by_row), a(10 * 11), b(8 * by_row);
            for (auto* all : {&to, &a, &b})
              for (double& x : *all) x = normal(random);
            std::vector<double> expected = to;
            const simd::DoubleMatrix m{a.data(), turned ? std::size_t{1} : 11, turned ? std::size_t{11} : 1};
            for (std::size_t i = 0; i < rows; ++i)
              for (std::size_t j = 0; j < columns; ++j)
                for (std::size_t r = 0; r < count; ++r)
                  expected[i * by_row + j] -= a[r * m.by_row + i * m.by_column] * b[r * by_row + j];
            simd::subtract_products(to.data(), by_row, rows, columns, count, m, b.data(), by_row);
            EXPECT_EQ(to, expected);
          }
  }
  use(0);
}

}  // namespace
}  // namespace tosaic::test
