// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
Op tosa_reduce_all() {
  return choosing(
      reduction_row("reduce_all", 49, "true where all elements along an axis are", either("in_out", {DType::boolean}),
                    [](const Run& run) {
                      return fold<[](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 && b != 0}; },
                                  Domain::integers>(run, 1);
                    }),
      bounds::truth);
}
}  // namespace tosaic::tosa
