// SPDX-License-Identifier: Apache-2.0
// The arena planner against the slow obvious one: every pair of buffers looked at.
#include "plan/arena.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <ctime>
#include <numeric>
#include <random>

namespace tosaic::plan {
namespace {

// Largest first, each at the lowest of 0 and the ends of others where it meets none.
std::uint64_t place_slowly(std::vector<Buffer>& buffers, std::uint64_t alignment) {
  const auto end = [&](const Buffer& b) { return b.offset + (b.bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::size_t> order(buffers.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return buffers[a].bytes > buffers[b].bytes; });
  std::uint64_t arena = 0;
  for (std::size_t i : order) {
    Buffer& buffer = buffers[i];
    std::vector<std::uint64_t> candidates{0};
    for (std::size_t p : placed) candidates.push_back(end(buffers[p]));
    std::sort(candidates.begin(), candidates.end());
    for (std::uint64_t offset : candidates) {
      buffer.offset = offset;
      if (std::none_of(placed.begin(), placed.end(), [&](std::size_t p) {
            const Buffer& other = buffers[p];
            return other.first <= buffer.last && buffer.first <= other.last && other.offset < end(buffer) &&
                   buffer.offset < end(other);
          }))
        break;
    }
    arena = std::max(arena, end(buffer));
    placed.push_back(i);
  }
  return arena;
}

void expect_same(std::vector<Buffer> buffers, std::uint64_t alignment) {
  std::vector<Buffer> slow = buffers;
  EXPECT_EQ(place(buffers, alignment), place_slowly(slow, alignment));
  for (std::size_t i = 0; i < buffers.size(); ++i) ASSERT_EQ(buffers[i].offset, slow[i].offset) << i;
}

TEST(Arena, IsThatOfTheSlowPlanner) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers(1 + below(60));
    const std::uint32_t steps = 1 + below(40), longest = 1 + below(steps), largest = 1 + below(2000);
    for (Buffer& b : buffers) {
      b.bytes = below(largest);
      b.first = below(steps);
      b.last = b.first + below(longest);
    }
    expect_same(buffers, round % 2 ? 16 : 64);
  }
}

TEST(Arena, OfNothing) {
  expect_same({}, 64);
  expect_same({{0, 0, 0, 9}, {1, 0, 0, 9}, {0, 0, 5, 9}}, 16);
}

double seconds_to_place(std::vector<Buffer> buffers) {
  const std::clock_t begin = std::clock();  // of the processor: the machine may have other work
  place(buffers, 64);
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

// A tenth of a second for each. (Comparing all pairs: a second.)
TEST(Arena, OfManyBuffersTakesNoTime) {
  std::vector<Buffer> chain, crowd, nested;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    chain.push_back({1000 + i % 7 * 100, i, i + 1, 0});
    crowd.push_back({64 + i % 1000, i % 10, 100 + i, 0});
    nested.push_back({64 + i % 1000, i, 40000 - i, 0});
  }
  EXPECT_LT(seconds_to_place(chain), 1);
  EXPECT_LT(seconds_to_place(crowd), 1);
  EXPECT_LT(seconds_to_place(nested), 1);
}

}  // namespace
}  // namespace tosaic::plan
