// SPDX-License-Identifier: Apache-2.0
#include "base/zero_again.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
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

// The flags of the mapping that has `address`, as Linux writes them: "hg" asks for large pages. Empty: nobody says.
std::string flags_of_mapping(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t from = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &end) == 2)
      here = from <= wanted && wanted < end;
    if (here && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

// Of tensors that are read as a whole, over and over; a small claim is not rounded up to megabytes.
TEST(ZeroedMemory, large_ones_are_in_large_pages) {
  const auto large = zeroed_memory(std::size_t{32} << 20), small = zeroed_memory(std::size_t{1} << 17);
  const std::string flags = flags_of_mapping(large.get() + (std::size_t{16} << 20));
  if (flags.empty() || !std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system says no flags of mappings, or has no pages of megabytes";
  EXPECT_NE(flags.find(" hg"), std::string::npos) << flags;
  EXPECT_EQ(flags_of_mapping(small.get()).find(" hg"), std::string::npos);
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
