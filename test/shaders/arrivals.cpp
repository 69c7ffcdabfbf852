// SPDX-License-Identifier: Apache-2.0
// Threads that wait for parts of a result: nobody asks for a part that does not exist, and nobody waits for ever.
#include "vulkan/compute_arrivals.h"

#include <gtest/gtest.h>

#include "base/system/thread_pool.h"

namespace tosaic::test {
namespace {

constexpr int threads = 8;
constexpr std::size_t parts = 4;

TEST(Arrivals, ManyWait) {
  ThreadPool pool(threads);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<std::size_t> asked = 0, most = 0;
    vulkan::Arrivals arrivals(
        [&](std::size_t part) {
          if (part > most) most = part;
          return ++asked % 3 == 0;
        },
        10);
    std::atomic<int> come = 0;
    pool.run(threads, [&](std::int64_t, int) {
      for (std::size_t part = 1; part <= parts; ++part) come += arrivals.wait_for(part);
    });
    ASSERT_EQ(come, threads * static_cast<int>(parts));
    ASSERT_EQ(most, parts);
  }
}

TEST(Arrivals, NobodyWaitsForEver) {
  vulkan::Arrivals arrivals([](std::size_t part) { return part == 1; }, 0.01);
  EXPECT_TRUE(arrivals.wait_for(1));
  EXPECT_FALSE(arrivals.wait_for(2));
  EXPECT_TRUE(arrivals.wait_for(1)) << "it is there";
}

}  // namespace
}  // namespace tosaic::test
