// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_clz() {
  return unary_row(
      "clz", 35, "the number of leading zero bits of each element", "input1", integers("in_out", {DType::i32}),
      map_unary<[](std::int64_t x) { return std::int64_t{std::countl_zero(static_cast<std::uint32_t>(x))}; },
                Domain::integers>);
}
}  // namespace tosaic::tosa
