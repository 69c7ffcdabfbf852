// SPDX-License-Identifier: Apache-2.0
// A few threads that share the tasks of one step. Threads start at the first call that has work for them, spin
// for a moment between calls (steps follow each other within microseconds), then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace tosaic {

class ThreadPool {
 public:
  explicit ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {}
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
  void work(int thread);
  void take_tasks(int thread);

  const int threads_;
  std::vector<std::thread> workers_;
  std::atomic<bool> busy_{false};
  // The job in hand. A worker joins by raising `active_` while the job is open; the caller closes the job when
  // no task is left and waits only for those who joined, so a sleeping worker never holds a run up.
  static constexpr std::uint64_t open_bit = 1u << 31;
  std::atomic<std::uint64_t> gate_{0};  // job number << 32 | open_bit | workers inside
  std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0;
  Call call_ = nullptr;
  const void* context_ = nullptr;
  std::atomic<bool> failed_{false};
  std::exception_ptr thrown_;  // the first, when failed_
  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
};

}  // namespace tosaic
