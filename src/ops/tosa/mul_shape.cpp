// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? Size() : result;
}
}  // namespace

Op tosa_mul_shape() { return shape_row("mul_shape", 83, "a * b, size by size", 2, map_sizes<size_of>); }
}  // namespace tosaic::tosa
