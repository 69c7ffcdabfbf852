// SPDX-License-Identifier: Apache-2.0
// One thread, which does everything itself.
#include "base/system/thread_pool.h"

namespace tosaic {

struct ThreadPool::Workers {};

ThreadPool::ThreadPool(int) : threads_(1) {}
ThreadPool::~ThreadPool() = default;

ThreadPool& ThreadPool::shared(int) {
  static ThreadPool pool(1);
  return pool;
}

void ThreadPool::run_shared(std::int64_t count, Call call, const void* context) {
  for (std::int64_t i = 0; i < count; ++i) call(context, i, 0);
}

unsigned hardware_threads() { return 1; }
bool can_start_threads(unsigned count) { return count == 0; }

}  // namespace tosaic
