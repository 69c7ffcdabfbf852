// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {
namespace {
Size size_of(std::int64_t a) { return a < 0 || a > 62 ? Size() : std::int64_t{1} << a; }
}  // namespace

Op tosa_exp2_shape() { return shape_row("exp2_shape", 85, "2 to the power of each size", 1, map_sizes<size_of>); }
}  // namespace tosaic::tosa
