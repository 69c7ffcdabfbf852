// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_exp() {
  return unary_row("exp", 37, "e to the power of each element", "input1", floats("in_out"),
                   map_unary<[](double x) { return std::exp(x); }>);
}
}  // namespace tosaic::tosa
