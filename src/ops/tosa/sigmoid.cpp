// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_sigmoid() {
  return unary_row("sigmoid", 13, "1 / (1 + exp(-x)), element by element", "input", floats("in_out"),
                   map_unary<[](double x) { return 1.0 / (1.0 + std::exp(-x)); }>);
}
}  // namespace tosaic::tosa
