// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_cos() {
  return said_as(aten::op::cos, bounded(unary_row("cos", 36, "the cosine of each element", "input1", floats("in_out"),
                                                  map_unary<[](double x) { return std::cos(x); }>),
                                        bounds::wave));
}
}  // namespace tosaic::tosa
