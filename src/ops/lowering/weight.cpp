// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/weight.h"

namespace tosaic {

int weight_axis(const Schema& schema, const Attrs& attrs) {
  const bool transposed =
      schema.argument("transposed") ? attrs.get_or("transposed", false) : schema.argument("output_padding") != nullptr;
  if (!transposed) return 0;
  return attrs.get_or<std::int64_t>("groups", 1) == 1 ? 1 : -1;
}

}  // namespace tosaic
