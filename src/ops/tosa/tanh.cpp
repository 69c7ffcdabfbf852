// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_tanh() {
  return unary_row("tanh", 14, "the hyperbolic tangent, element by element", "input", floats("in_out"),
                   map_unary<[](double x) { return std::tanh(x); }>);
}
}  // namespace tosaic::tosa
