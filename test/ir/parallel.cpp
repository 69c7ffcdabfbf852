// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace tosaic::test {
namespace {

// How often each index of [0, count) is visited.
std::vector<int> visits(std::size_t count, std::size_t grain) {
  std::vector<int> seen(count, 0);
  in_parallel(count, grain, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) ++seen[i];
  });
  return seen;
}

TEST(InParallel, CoversEverythingOnce) {
  for (const std::size_t count : {0, 1, 2, 63, 64, 65, 1000, 100'003})
    for (const std::size_t grain : {0, 1, 7, 64, 1000, 1'000'000})
      EXPECT_EQ(visits(count, grain), std::vector<int>(count, 1)) << count << " by " << grain;
}

TEST(InParallel, NestsAndTakesSeveralCallers) {
  std::vector<std::thread> callers;
  std::vector<std::size_t> sums(4, 0);
  for (std::size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&sums, c] {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::size_t> parts(100, 0);
        in_parallel(parts.size(), 1, [&](std::size_t first, std::size_t end) {
          for (std::size_t i = first; i < end; ++i) {
            const auto inner = visits(50, 1);
            parts[i] = static_cast<std::size_t>(std::accumulate(inner.begin(), inner.end(), 0));
          }
        });
        sums[c] += std::accumulate(parts.begin(), parts.end(), std::size_t{0});
      }
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sums, std::vector<std::size_t>(4, 50 * 100 * 50));
}

}  // namespace
}  // namespace tosaic::test
