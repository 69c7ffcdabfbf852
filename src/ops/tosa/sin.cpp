// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_sin() {
  return said_as(aten::op::sin, bounded(unary_row("sin", 44, "the sine of each element", "input1", floats("in_out"),
                                                  map_unary<[](double x) { return std::sin(x); }>),
                                        bounds::wave));
}
}  // namespace tosaic::tosa
