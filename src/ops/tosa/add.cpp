// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_add() {
  return said_as(aten::op::add_Tensor,
                 bounded(binary_row("add", 15, "a + b, with broadcasting",
                                    either("in_out", {DType::i32}) + floats("in_out") + int64s("in_out"),
                                    map_binary<[](auto a, auto b) { return a + b; }>),
                         bounds::sum));
}
}  // namespace tosaic::tosa
