// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_logical_and() {
  return said_as(
      aten::op::logical_and,
      choosing(
          binary_row("logical_and", 21, "true where both are, with broadcasting", either("in_out", {DType::boolean}),
                     map_binary<[](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 && b != 0}; },
                                Domain::integers>),
          bounds::zero_or_one));
}
}  // namespace tosaic::tosa
