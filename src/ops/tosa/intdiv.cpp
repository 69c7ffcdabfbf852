// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_intdiv() {
  return bounded(
      binary_row("intdiv", 20, "a / b truncated towards zero, with broadcasting", either("in_out", {DType::i32}),
                 map_binary<[](std::int64_t a, std::int64_t b) { return a / b; }, Domain::integers,
                            [](auto, auto b, int) { return b != 0; }>),
      bounds::quotient);
}
}  // namespace tosaic::tosa
