// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_ceil() {
  return unary_row("ceil", 34, "each element rounded up to an integral value", "input1", floats("in_out"),
                   map_unary<[](double x) { return std::ceil(x); }>);
}
}  // namespace tosaic::tosa
