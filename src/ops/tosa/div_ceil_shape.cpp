// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a, std::int64_t b) { return a < 0 || b < 1 ? Size() : a / b + (a % b != 0); }
}  // namespace

Op tosa_div_ceil_shape() {
  return shape_row("div_ceil_shape", 91, "a / b rounded up, size by size", 2, map_sizes<size_of>);
}
}  // namespace tosaic::tosa
