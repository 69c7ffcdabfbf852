// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_logical_not() {
  return said_as(aten::op::logical_not,
                 choosing(unary_row("logical_not", 40, "true where the element is false", "input1",
                                    either("in_out", {DType::boolean}),
                                    map_unary<[](std::int64_t x) { return std::int64_t{x == 0}; }, Domain::integers>),
                          bounds::zero_or_one));
}
}  // namespace tosaic::tosa
