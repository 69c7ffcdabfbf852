// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
Op tosa_reduce_sum() {
  return bounded(
      reduction_row("reduce_sum", 54, "the sum of the elements along an axis",
                    integers("in_out", {DType::i32}) + floats("in_out"),
                    [](const Run& run) { return fold<[](auto a, auto b) { return a + b; }, Domain::both>(run, 0); }),
      bounds::along_axis);
}
}  // namespace tosaic::tosa
