// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a) {
  if (a < 1) return std::nullopt;
  return std::bit_width(static_cast<std::uint64_t>(a)) - 1;
}
}  // namespace

Op tosa_log2_floor_shape() {
  return shape_row("log2_floor_shape", 87, "the logarithm to base 2 of each size, rounded down", 1, map_sizes<size_of>);
}
}  // namespace tosaic::tosa
