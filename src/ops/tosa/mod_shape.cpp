// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a, std::int64_t b) { return a < 0 || b < 1 ? Size() : a % b; }
}  // namespace

Op tosa_mod_shape() {
  return shape_row("mod_shape", 90, "the rest of a divided by b, size by size", 2, map_sizes<size_of>);
}
}  // namespace tosaic::tosa
