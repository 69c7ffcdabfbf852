// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_sub() {
  return said_as(aten::op::sub_Tensor,
                 bounded(binary_row("sub", 30, "a - b, with broadcasting",
                                    either("in_out", {DType::i32}) + floats("in_out") + int64s("in_out"),
                                    map_binary<[](auto a, auto b) { return a - b; }>),
                         bounds::difference));
}
}  // namespace tosaic::tosa
