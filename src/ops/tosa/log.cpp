// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_elementwise.h"

namespace tosaic::tosa {
Op tosa_log() {
  return unary_row("log", 39, "the natural logarithm of each element", "input1", floats("in_out"),
                   map_unary<[](double x) { return std::log(x); }>);
}
}  // namespace tosaic::tosa
