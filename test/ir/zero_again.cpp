// SPDX-License-Identifier: Apache-2.0
#include "base/zero_again.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <vector>

#include "base/memory.h"

namespace tosaic::test {
namespace {

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What a damaged header claims and nobody touches is not paid for when a session is reset.
TEST(ZeroAgain, touches_no_more_than_was_used) {
  constexpr std::size_t claimed = std::size_t{1} << 32;
  const auto memory = zeroed_memory(claimed);
  if (!memory) GTEST_SKIP() << "this process may not have 4 GB of addresses";
  const std::uint64_t before = resident_bytes();
  for (const std::size_t at : {std::size_t{0}, claimed / 2, claimed - 1}) memory.get()[at] = std::byte{7};
  zero_again(memory, claimed);
  for (const std::size_t at : {std::size_t{0}, claimed / 2, claimed - 1}) EXPECT_EQ(memory.get()[at], std::byte{0});
  EXPECT_LT(resident_bytes(), before + (64u << 20));
}

TEST(ZeroAgain, of_any_memory) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 17, std::size_t{40} << 20}) {
    const auto ours = zeroed_memory(bytes);
    std::vector<std::byte> lent(bytes, std::byte{7});
    const std::shared_ptr<std::byte> theirs(lent.data(), [](std::byte*) {});
    std::fill_n(ours.get(), bytes, std::byte{7});
    for (const auto& memory : {ours, theirs}) {
      zero_again(memory, bytes);
      EXPECT_EQ(std::count(memory.get(), memory.get() + bytes, std::byte{0}), static_cast<std::ptrdiff_t>(bytes));
    }
  }
}

}  // namespace
}  // namespace tosaic::test
