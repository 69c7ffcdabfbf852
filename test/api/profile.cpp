// SPDX-License-Identifier: Apache-2.0
// The profiles of several runs become one: by what ran, in the order of the first, whatever a branch leaves out.
#include "api/profile.h"

#include <gtest/gtest.h>

namespace tosaic::test {
namespace {

OperationTime step(const char* operation, double seconds, const char* within = "", const char* value = "") {
  return {operation, seconds, within, value, ""};
}

std::vector<std::string> names(const std::vector<MeasuredOperation>& of) {
  std::vector<std::string> all;
  for (const MeasuredOperation& one : of) all.push_back(one.operation);
  return all;
}

TEST(Profile, MedianAndLeast) {
  RepeatedProfile profile;
  for (const double ms : {5.0, 1.0, 3.0}) profile.add({step("conv", ms), step("conv", 10 * ms), step("add", 2)});
  const auto times = profile.times();
  ASSERT_EQ(names(times), (std::vector<std::string>{"conv", "conv", "add"}));
  EXPECT_EQ(times[0].seconds, 3);
  EXPECT_EQ(times[0].least_seconds, 1);
  EXPECT_EQ(times[1].seconds, 30);
  EXPECT_EQ(times[1].least_seconds, 10);
}

TEST(Profile, OtherBranches) {
  RepeatedProfile profile;
  profile.add({step("a", 1), step("then", 1), step("z", 1)});
  for (int i = 0; i < 3; ++i) profile.add({step("a", 2), step("else", 2), step("z", 2)});
  const auto times = profile.times();
  EXPECT_EQ(names(times), (std::vector<std::string>{"a", "then", "z", "else"}));
  EXPECT_EQ(times[2].seconds, 2);
  EXPECT_EQ(times[1].seconds, 1);
}

TEST(Profile, KernelsOfDelegatesAndOutside) {
  RepeatedProfile profile;
  profile.add({step("quantise", 1), step("TOSABackend", 9), step("conv", 5, "TOSABackend", "x"),
               step("add", 1, "TOSABackend"), step("conv", 2, "TOSABackend", "y"), step("VulkanBackend", 4)});
  const auto kinds = time_by_kind(profile.times());
  ASSERT_EQ(kinds.size(), 4u);  // not the delegate whose parts are known
  EXPECT_EQ(kinds[0].operation, "conv");
  EXPECT_EQ(kinds[0].count, 2u);
  EXPECT_EQ(kinds[0].seconds, 7);
  EXPECT_EQ(kinds[1].operation, "VulkanBackend");
  EXPECT_TRUE(time_by_kind({}).empty());
}

}  // namespace
}  // namespace tosaic::test
