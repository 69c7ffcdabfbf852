// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_erf() {
  return unary_row("erf", 12, "the error function, element by element", "input", floats("in_out"),
                   map_unary<[](double x) { return std::erf(x); }>);
}
}  // namespace tosaic::tosa
