// SPDX-License-Identifier: Apache-2.0
#include "read/symbolic.h"

#include <gtest/gtest.h>

namespace tosaic::test {
namespace {

std::string read(std::string_view srepr) {
  auto e = read_symbolic(srepr, [](std::string_view symbol) {
    return symbol == "s0" ? Bounds{2, 16} : symbol == "s1" ? Bounds{0, 8} : Bounds{0, {}};
  });
  auto bound = [](std::optional<std::int64_t> b) { return b ? std::to_string(*b) : "?"; };
  return e.text + " in " + bound(e.bounds.lowest) + ".." + bound(e.bounds.highest);
}
const std::string s0 = "Symbol('s0', positive=True, integer=True)", s1 = "Symbol('s1', integer=True)",
                  u0 = "Symbol('u0', integer=True)";

TEST(Symbolic, short_text_and_bounds) {
  EXPECT_EQ(read(s0), "s0 in 2..16");
  EXPECT_EQ(read("Integer(7)"), "7 in 7..7");
  EXPECT_EQ(read("Add(Integer(1), Mul(Integer(2), " + s0 + "))"), "2*s0 + 1 in 5..33");
  EXPECT_EQ(read("Add(" + s0 + ", Integer(-1))"), "s0 - 1 in 1..15");
  EXPECT_EQ(read("Mul(Integer(-1), " + s0 + ")"), "-s0 in -16..-2");
  EXPECT_EQ(read("Mul(" + s0 + ", Add(" + s1 + ", Integer(1)))"), "s0*(s1 + 1) in 2..144");
  EXPECT_EQ(read("FloorDiv(Add(" + s0 + ", Integer(1)), Integer(2))"), "(s0 + 1)//2 in 1..8");
  EXPECT_EQ(read("CeilDiv(" + s0 + ", Integer(3))"), "ceil(s0/3) in 1..6");
  EXPECT_EQ(read("Pow(" + s0 + ", Integer(2))"), "s0^2 in 4..256");
  EXPECT_EQ(read("Max(Integer(4), " + s0 + ")"), "max(4, s0) in 4..16");
  EXPECT_EQ(read("Min(Integer(4), " + u0 + ")"), "min(4, u0) in 0..4");
  EXPECT_EQ(read("PythonMod(" + s0 + ", Integer(4))"), "s0 % 4 in 0..3");
  EXPECT_EQ(read("ToFloat(" + s0 + ")"), "s0 in 2..16");
}

TEST(Symbolic, unbounded_and_unknown) {
  EXPECT_EQ(read(u0), "u0 in 0..?");
  EXPECT_EQ(read("Mul(Integer(3), " + u0 + ")"), "3*u0 in 0..?");
  EXPECT_EQ(read("Mystery(" + s0 + ", Integer(2))"), "Mystery(s0, 2) in ?..?");
  EXPECT_EQ(read("StrictGreaterThan(" + s0 + ", Integer(2))"), "s0 > 2 in ?..?");
  EXPECT_EQ(read("Mul(Integer(9223372036854775807), " + s0 + ")"), "9223372036854775807*s0 in ?..?");
}

TEST(Symbolic, what_cannot_be_read_stays_printable) {
  EXPECT_EQ(read("Add("), "unreadable in ?..?");
  EXPECT_EQ(read("Symbol('a)\n')"), "unreadable in ?..?");
  EXPECT_EQ(read(""), "unreadable in ?..?");
  EXPECT_EQ(read("s0 + 1"), "s0 + 1 in ?..?");  // torch 2.5 wrote infix text
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Max(";
  EXPECT_EQ(read(deep), "unreadable in ?..?");
}

}  // namespace
}  // namespace tosaic::test
