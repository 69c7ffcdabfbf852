// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
// Minus zero becomes plus zero; the lowest i32 has no magnitude in i32 and is unpredictable.
Op tosa_abs() {
  return said_as(aten::op::abs,
                 bounded(unary_row("abs", 32, "the magnitude of each element", "input1",
                                   integers("in_out", {DType::i32}) + floats("in_out") + int64s("in_out"),
                                   map_unary<[](auto x) { return x < 0 || x == 0 ? 0 - x : x; }, Domain::both>),
                         bounds::magnitude));
}
}  // namespace tosaic::tosa
