// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a, std::int64_t b) { return std::max(a, b); }
}  // namespace

Op tosa_max_shape() { return shape_row("max_shape", 88, "the larger of a and b, size by size", 2, map_sizes<size_of>); }
}  // namespace tosaic::tosa
