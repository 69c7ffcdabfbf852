// SPDX-License-Identifier: Apache-2.0
#include "vulkan/driver_means.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/system/pages.h"
#include "base/system/thread_pool.h"

namespace tosaic::vulkan {
namespace {

// Lavapipe starts one for each processor, up to 32, and a few for its queue and its cache.
constexpr unsigned most_of_device = 32, others = 6;
// Of addresses: its compiler, and the stacks and heaps of those threads. Drivers end the process where memory ends
// (Mesa 25 with LLVM 19 did at 900 MB for two processors).
constexpr std::size_t least_bytes = std::size_t{1} << 30, bytes_per_thread = std::size_t{64} << 20;

}  // namespace

Status has_means_for_drivers() {
  const unsigned threads = std::min(hardware_threads(), most_of_device) + others;
  const std::size_t bytes = least_bytes + threads * bytes_per_thread;
  if (!has_addresses(bytes))
    return error("vulkan.memory",
                 fmt::format("the process may not have {} MB more, which a Vulkan driver may take", bytes >> 20))
        .hint("raise its limit (ulimit -v), or run the program on the CPU: --device cpu, or --target tosa-fp");
  if (!can_start_threads(threads))
    return error(
               "vulkan.memory",
               fmt::format("the system gives the process no {} threads more, which a Vulkan driver may start", threads))
        .hint("raise its limit (ulimit -u), or run the program on the CPU: --device cpu, or --target tosa-fp");
  return {};
}

}  // namespace tosaic::vulkan
