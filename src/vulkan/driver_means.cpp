// SPDX-License-Identifier: Apache-2.0
#include "vulkan/driver_means.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tosaic::vulkan {
namespace {

// Lavapipe starts one for each processor, up to 32, and a few for its queue and its cache.
constexpr unsigned most_of_device = 32, others = 6;
// Of addresses: its compiler, and the stacks and heaps of those threads. Drivers end the process where memory ends
// (Mesa 25 with LLVM 19 did at 900 MB for two processors).
constexpr std::size_t least_bytes = std::size_t{1} << 30, bytes_per_thread = std::size_t{64} << 20;

// Do so many threads run at once?
bool can_start(unsigned wanted) {
  std::mutex guard;
  std::condition_variable all_said;
  bool done = false;
  std::vector<std::thread> threads;
  bool started = true;
  try {
    threads.reserve(wanted);
    for (unsigned t = 0; t < wanted; ++t)
      threads.emplace_back([&] {
        std::unique_lock lock(guard);
        all_said.wait(lock, [&] { return done; });
      });
  } catch (const std::exception&) { started = false; }
  {
    const std::lock_guard lock(guard);
    done = true;
  }
  all_said.notify_all();
  for (std::thread& t : threads) t.join();
  return started;
}

bool can_reserve(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && ::munmap(at, bytes) == 0;
}

}  // namespace

Status has_means_for_drivers() {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, most_of_device) + others;
  const std::size_t bytes = least_bytes + threads * bytes_per_thread;
  if (!can_reserve(bytes))
    return error("vulkan.memory",
                 fmt::format("the process may not have {} MB more, which a Vulkan driver may take", bytes >> 20))
        .hint("raise its limit (ulimit -v), or run the program on the CPU: --device cpu, or --target tosa-fp");
  if (!can_start(threads))
    return error(
               "vulkan.memory",
               fmt::format("the system gives the process no {} threads more, which a Vulkan driver may start", threads))
        .hint("raise its limit (ulimit -u), or run the program on the CPU: --device cpu, or --target tosa-fp");
  return {};
}

}  // namespace tosaic::vulkan
