// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/pool.h"

namespace tosaic::tosa {

Op tosa_max_pool2d_adaptive() {
  return adaptive_pool(tosa_max_pool2d(), "max_pool2d_adaptive", 95,
                       [](extension::Definition& d) { return as_pool(d, op::max_pool2d); });
}
}  // namespace tosaic::tosa
