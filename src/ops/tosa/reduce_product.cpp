// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
Op tosa_reduce_product() {
  return reduction_row(
      "reduce_product", 53, "the product of the elements along an axis", floats("in_out"),
      [](const Run& run) { return fold<[](double a, double b) { return a * b; }, Domain::floats>(run, 1); });
}
}  // namespace tosaic::tosa
