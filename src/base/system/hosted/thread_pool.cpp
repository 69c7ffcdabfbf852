// SPDX-License-Identifier: Apache-2.0
#include "base/system/thread_pool.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

struct ThreadPool::Workers {
  explicit Workers(int thread_count) : shares(static_cast<std::size_t>(thread_count)) {}
  void work(int thread);
  void share_out(std::int64_t count);
  void take_tasks(int thread);

  // Neighbouring tasks, which one thread takes from the front and then, where it is done with its own, others as well:
  // in the next step it finds what it has written itself in its own cache.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  std::vector<std::thread> threads;
  // The job in hand. A worker joins by raising `active_` while the job is open; the caller closes the job when
  // no task is left and waits only for those who joined, so a sleeping worker never holds a run up.
  static constexpr std::uint64_t open_bit = 1u << 31;
  std::atomic<std::uint64_t> gate{0};  // job number << 32 | open_bit | workers inside
  std::vector<Share> shares;
  Call call = nullptr;
  const void* context = nullptr;
  std::atomic<bool> failed{false};
  std::exception_ptr thrown;  // the first, when failed
  std::atomic<bool> stop{false};
  std::atomic<int> sleepers{0};
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads < 1 ? 1 : threads), workers_(std::make_unique<Workers>(threads_)) {}

ThreadPool::~ThreadPool() {
  Workers& w = *workers_;
  w.stop.store(true);
  w.gate.fetch_add(std::uint64_t{1} << 32);
  w.gate.notify_all();
  for (std::thread& worker : w.threads) worker.join();
}

ThreadPool& ThreadPool::shared(int threads) {
  static std::mutex& door = *new std::mutex;
  static std::map<int, ThreadPool*>& pools = *new std::map<int, ThreadPool*>;
  if (threads <= 0) threads = static_cast<int>(hardware_threads());
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
  Workers& w = *workers_;
  try {
    if (w.threads.empty())
      for (int t = 1; t < threads_; ++t) w.threads.emplace_back([&w, t] { w.work(t); });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are take all tasks.
  }
  w.share_out(count);
  w.call = call;
  w.context = context;
  const std::uint64_t job = (w.gate.load(std::memory_order_relaxed) >> 32) + 1;
  w.gate.store(job << 32 | Workers::open_bit);
  if (w.sleepers.load() > 0) w.gate.notify_all();
  w.take_tasks(0);
  w.gate.fetch_and(~Workers::open_bit, std::memory_order_acq_rel);
  for (int spins = 0; (w.gate.load(std::memory_order_acquire) & (Workers::open_bit - 1)) != 0; ++spins) {
    if (spins < spins_before_yield)
      pause();
    else
      std::this_thread::yield();
  }
  if (w.failed.exchange(false)) std::rethrow_exception(std::exchange(w.thrown, nullptr));
}

void ThreadPool::Workers::share_out(std::int64_t count) {
  const auto all = static_cast<std::int64_t>(shares.size());
  for (std::int64_t t = 0; t < all; ++t) {
    Share& share = shares[static_cast<std::size_t>(t)];
    share.end = count * (t + 1) / all;
    share.next.store(count * t / all, std::memory_order_relaxed);
  }
}

void ThreadPool::Workers::take_tasks(int thread) {
  const std::size_t own = static_cast<std::size_t>(thread), all = shares.size();
  for (std::size_t i = 0; i < all; ++i) {
    Share& share = shares[(own + i) % all];
    while (share.next.load(std::memory_order_relaxed) < share.end && !failed.load(std::memory_order_relaxed)) {
      const std::int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
      if (index >= share.end) break;
      try {
        call(context, index, thread);
      } catch (...) {
        if (!failed.exchange(true)) thrown = std::current_exception();
      }
    }
  }
}

void ThreadPool::Workers::work(int thread) {
  std::uint64_t last_job = 0;
  int spins = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    std::uint64_t now = gate.load(std::memory_order_acquire);
    const std::uint64_t job = now >> 32;
    if (job == last_job || !(now & open_bit)) {
      if (++spins < spins_before_sleep) {
        pause();
      } else {
        sleepers.fetch_add(1);
        gate.wait(now);
        sleepers.fetch_sub(1);
        spins = 0;
      }
      continue;
    }
    if (!gate.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
    take_tasks(thread);
    gate.fetch_sub(1, std::memory_order_acq_rel);
    last_job = job;
    spins = 0;
  }
}

unsigned hardware_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

bool can_start_threads(unsigned wanted) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  bool started = true;
  try {
    threads.reserve(wanted);
    for (unsigned t = 0; t < wanted; ++t) threads.emplace_back([&] { done.wait(false); });
  } catch (const std::exception&) { started = false; }
  done = true;
  done.notify_all();
  for (std::thread& t : threads) t.join();
  return started;
}

}  // namespace tosaic
