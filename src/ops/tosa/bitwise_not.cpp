// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_bitwise_not() {
  return said_as(aten::op::bitwise_not,
                 bounded(unary_row("bitwise_not", 33, "every bit of each element inverted", "input1",
                                   integers("in_out", {DType::i8, DType::i16, DType::i32}) + int64s("in_out"),
                                   map_unary<[](std::int64_t x) { return ~x; }, Domain::integers>),
                         bounds::inverted_bits));
}
}  // namespace tosaic::tosa
