// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/pool.h"

namespace tosaic::tosa {

Op tosa_avg_pool2d_adaptive() {
  return adaptive_pool(tosa_avg_pool2d(), "avg_pool2d_adaptive", 96,
                       [](extension::Definition& d) { return as_pool(d, op::avg_pool2d); });
}
}  // namespace tosaic::tosa
