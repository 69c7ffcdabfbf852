// SPDX-License-Identifier: Apache-2.0
// A few threads that share the tasks of one step. Threads start at the first call that has work for them, spin
// for a moment between calls (steps follow each other within microseconds), then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace tosaic {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool of the process with so many threads (0: as many as the machine has), for everybody who has none of their
  // own. Never destroyed: in a process that has forked, the threads to be joined are not there.
  static ThreadPool& shared(int threads = 0);

  int threads() const { return threads_; }

  // Calls task(index, thread) for index in [0, count), in any order; thread in [0, threads()) tells apart what
  // runs at the same time. The caller takes part and returns when all are done. Which thread takes which task
  // varies from run to run: a task must not depend on it. What a task throws, here or in another thread, comes out when
  // all have stopped; the tasks that nobody had begun are then left out. One caller at a time has the threads: while
  // they are at work for another one, or for the task that calls, the caller works alone.
  template <class F>
  void run(std::int64_t count, const F& task) {
    if (threads_ == 1 || count <= 1 || busy_.exchange(true, std::memory_order_acquire)) {
      for (std::int64_t i = 0; i < count; ++i) task(i, 0);
      return;
    }
    run_shared(
        count,
        [](const void* context, std::int64_t index, int thread) { (*static_cast<const F*>(context))(index, thread); },
        &task);
  }

 private:
  using Call = void (*)(const void*, std::int64_t, int);
  void run_shared(std::int64_t count, Call call, const void* context);

  struct Workers;  // the threads, and the job in hand
  const int threads_;
  std::unique_ptr<Workers> workers_;
  std::atomic<bool> busy_{false};
};

// That the machine runs at once, at least one.
unsigned hardware_threads();
// Do so many more run at once? They are started, and end.
bool can_start_threads(unsigned count);

}  // namespace tosaic
