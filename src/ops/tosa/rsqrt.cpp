// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_rsqrt() {
  return said_as(aten::op::rsqrt,
                 bounded(unary_row("rsqrt", 43, "1 / sqrt(x), element by element; NaN below zero", "input1",
                                   floats("in_out"), map_unary<[](double x) { return 1.0 / std::sqrt(x); }>),
                         bounds::not_negative));
}
}  // namespace tosaic::tosa
