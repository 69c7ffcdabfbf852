// SPDX-License-Identifier: Apache-2.0
// Products of i16 with i16 by the kernel for i16 and bytes: a factor x is 256 times its upper part plus its lower one,
// both within -128 and 128. B has the upper parts of a panel's columns in one unit, and the lower ones in the next.
#pragma once
#include <cstdint>

namespace tosaic::cpu {

// So many products of i16 and a part fit i32: 2^15 * 2^7 each.
constexpr std::int64_t most_part_products = 510;

// Element (j, i), column j and product i of k, is at from[j * column_stride + i * k_stride].
struct ShortColumns {
  const std::int16_t* from;
  std::int64_t columns, k, column_stride, k_stride;
};

struct ShortParts {
  // [pairs of k][upper, lower][lane][2], zeros where there are no columns and products.
  void (*pack)(const ShortColumns& columns, std::int64_t lanes, std::int16_t* to);
  // Rows of sums [upper, lower][lane]: what they come to goes to `to`, or is added there.
  void (*join)(const std::int32_t* sums, std::int64_t rows, std::int64_t lanes, std::int64_t columns, bool add,
               std::int64_t* to, std::int64_t stride);
};
const ShortParts& short_parts();

}  // namespace tosaic::cpu
