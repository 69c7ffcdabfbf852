// SPDX-License-Identifier: Apache-2.0
// The arena planner against the slow obvious one: every pair of buffers looked at.
#include "plan/arena.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>

namespace tosaic::plan {
namespace {

using Order = std::vector<std::size_t>;

// Each at the lowest of 0 and the ends of others where it meets none.
std::uint64_t place_slowly(std::vector<Buffer>& buffers, const Order& order, std::uint64_t alignment) {
  const auto end = [&](const Buffer& b) { return b.offset + (b.bytes + alignment - 1) / alignment * alignment; };
  Order placed;
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

// Largest first, then outwards from where most is alive; the smaller arena of both.
std::uint64_t place_slowly(std::vector<Buffer>& buffers, std::uint64_t alignment) {
  Order order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return buffers[a].bytes > buffers[b].bytes; });
  std::uint32_t peak = 0;
  std::uint64_t most = 0;
  for (std::uint32_t step = 0; step < 200; ++step) {
    std::uint64_t sum = 0;
    for (const Buffer& b : buffers)
      if (b.first <= step && step <= b.last) sum += (b.bytes + alignment - 1) / alignment * alignment;
    if (sum > most) peak = step, most = sum;
  }
  std::vector<Buffer> outwards = buffers;
  const std::uint64_t arena = place_slowly(buffers, order, alignment);
  const auto distance = [&](const Buffer& b) {
    return std::max({std::int64_t{0}, std::int64_t{b.first} - peak, std::int64_t{peak} - b.last});
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return distance(buffers[a]) < distance(buffers[b]); });
  const std::uint64_t other = place_slowly(outwards, order, alignment);
  EXPECT_GE(std::min(arena, other), most);
  if (other >= arena) return arena;
  buffers = outwards;
  return other;
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

// MobileNetV1, 0.25 wide, for 96x96: largest first, the second tensor lies where the third has no room.
TEST(Arena, OfAChainIsItsPeak) {
  std::vector<Buffer> buffers;
  for (const std::uint64_t bytes : {27648, 18432, 18432, 36864, 9216, 18432, 18432, 18432, 4608, 9216}) {
    const auto step = static_cast<std::uint32_t>(buffers.size());
    buffers.push_back({bytes, step, step + 1, 0});
  }
  EXPECT_EQ(place(buffers, 16), 18432 + 36864);
  EXPECT_EQ(peak_of(buffers, 16).step, 3);
}

double seconds_to_place(std::vector<Buffer> buffers) {
  const std::clock_t begin = std::clock();  // of the processor: the machine may have other work
  place(buffers, 64);
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Eight times as many buffers take nine times as long, a tenth of a second in a release build. (Comparing all pairs: 64
// times.)
TEST(Arena, OfManyBuffersTakesNoTime) {
  const auto chain = [](std::uint32_t i, std::uint32_t) { return Buffer{1000 + i % 7 * 100, i, i + 1, 0}; };
  const auto crowd = [](std::uint32_t i, std::uint32_t) { return Buffer{64 + i % 1000, i % 10, 100 + i, 0}; };
  const auto nested = [](std::uint32_t i, std::uint32_t n) { return Buffer{64 + i % 1000, i, 2 * n - i, 0}; };
  for (const auto& shape :
       std::initializer_list<std::function<Buffer(std::uint32_t, std::uint32_t)>>{chain, crowd, nested}) {
    double seconds[2];
    for (const int large : {0, 1}) {
      std::vector<Buffer> buffers;
      const std::uint32_t n = large ? 20000 : 2500;
      for (std::uint32_t i = 0; i < n; ++i) buffers.push_back(shape(i, n));
      seconds[large] = seconds_to_place(std::move(buffers));
    }
    EXPECT_LT(seconds[1], 24 * seconds[0] + 0.1);
  }
}

}  // namespace
}  // namespace tosaic::plan
