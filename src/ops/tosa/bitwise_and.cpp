// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_bitwise_and() {
  return said_as(aten::op::bitwise_and_Tensor,
                 bounded(binary_row("bitwise_and", 17, "the bits set in both, with broadcasting",
                                    integers("in_out", {DType::i8, DType::i16, DType::i32}) + int64s("in_out"),
                                    map_binary<[](std::int64_t a, std::int64_t b) { return a & b; }, Domain::integers>),
                         bounds::bits));
}
}  // namespace tosaic::tosa
