// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_floor() {
  return unary_row("floor", 38, "each element rounded down to an integral value", "input1", floats("in_out"),
                   map_unary<[](double x) { return std::floor(x); }>);
}
}  // namespace tosaic::tosa
