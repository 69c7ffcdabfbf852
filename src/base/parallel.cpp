// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <thread>

namespace tosaic {

SharedPool& shared_pool() {
  // Never destroyed: in a process that has forked, the threads to be joined are not there.
  static SharedPool& shared =
      *new SharedPool{.pool = ThreadPool(static_cast<int>(std::thread::hardware_concurrency()))};
  return shared;
}

}  // namespace tosaic
