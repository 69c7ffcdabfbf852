// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_logical_or() {
  return said_as(
      aten::op::logical_or,
      choosing(
          binary_row("logical_or", 24, "true where either is, with broadcasting", either("in_out", {DType::boolean}),
                     map_binary<[](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 || b != 0}; },
                                Domain::integers>),
          bounds::zero_or_one));
}
}  // namespace tosaic::tosa
