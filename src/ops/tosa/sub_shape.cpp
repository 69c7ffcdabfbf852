// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_sub_overflow(a, b, &result) ? Size() : result;
}
}  // namespace

Op tosa_sub_shape() { return shape_row("sub_shape", 82, "a - b, size by size", 2, map_sizes<size_of>); }
}  // namespace tosaic::tosa
