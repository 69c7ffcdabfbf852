// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tosaic {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

constexpr int spins_before_sleep = 4000;  // about 50 microseconds
constexpr int spins_before_yield = 2000;

}  // namespace

ThreadPool::~ThreadPool() {
  stop_.store(true);
  gate_.fetch_add(std::uint64_t{1} << 32);
  gate_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

ThreadPool& ThreadPool::shared(int threads) {
  static std::mutex& door = *new std::mutex;
  static std::map<int, ThreadPool*>& pools = *new std::map<int, ThreadPool*>;
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::lock_guard<std::mutex> lock(door);
  ThreadPool*& pool = pools[threads];
  if (!pool) pool = new ThreadPool(threads);
  return *pool;
}

void ThreadPool::run_shared(std::int64_t count, Call call, const void* context) {
  const struct Leave {  // however it ends
    std::atomic<bool>& busy;
    ~Leave() { busy.store(false, std::memory_order_release); }
  } leave{busy_};
  try {
    if (workers_.empty())
      for (int t = 1; t < threads_; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are take all tasks.
  }
  count_ = count;
  call_ = call;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  const std::uint64_t job = (gate_.load(std::memory_order_relaxed) >> 32) + 1;
  gate_.store(job << 32 | open_bit);
  if (sleepers_.load() > 0) gate_.notify_all();
  take_tasks(0);
  gate_.fetch_and(~open_bit, std::memory_order_acq_rel);
  for (int spins = 0; (gate_.load(std::memory_order_acquire) & (open_bit - 1)) != 0; ++spins) {
    if (spins < spins_before_yield)
      pause();
    else
      std::this_thread::yield();
  }
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void ThreadPool::take_tasks(int thread) {
  for (;;) {
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    try {
      call_(context_, index, thread);
    } catch (...) {
      if (!failed_.exchange(true)) thrown_ = std::current_exception();
      next_.store(count_, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t last_job = 0;
  int spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    std::uint64_t gate = gate_.load(std::memory_order_acquire);
    const std::uint64_t job = gate >> 32;
    if (job == last_job || !(gate & open_bit)) {
      if (++spins < spins_before_sleep) {
        pause();
      } else {
        sleepers_.fetch_add(1);
        gate_.wait(gate);
        sleepers_.fetch_sub(1);
        spins = 0;
      }
      continue;
    }
    if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) continue;
    take_tasks(thread);
    gate_.fetch_sub(1, std::memory_order_acq_rel);
    last_job = job;
    spins = 0;
  }
}

}  // namespace tosaic
