// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_reciprocal() {
  return said_as(aten::op::reciprocal, bounded(unary_row("reciprocal", 42, "1 / x, element by element", "input1",
                                                         floats("in_out"), map_unary<[](double x) { return 1.0 / x; }>),
                                               bounds::inverse));
}
}  // namespace tosaic::tosa
