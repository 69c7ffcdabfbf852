// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <thread>

namespace tosaic {

SharedPool& shared_pool() {
  static SharedPool shared{.pool = ThreadPool(static_cast<int>(std::thread::hardware_concurrency()))};
  return shared;
}

}  // namespace tosaic
