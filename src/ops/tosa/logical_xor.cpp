// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_logical_xor() {
  return said_as(
      aten::op::logical_xor,
      choosing(binary_row("logical_xor", 25, "true where exactly one is, with broadcasting",
                          either("in_out", {DType::boolean}),
                          map_binary<[](std::int64_t a, std::int64_t b) { return std::int64_t{(a != 0) != (b != 0)}; },
                                     Domain::integers>),
               bounds::zero_or_one));
}
}  // namespace tosaic::tosa
