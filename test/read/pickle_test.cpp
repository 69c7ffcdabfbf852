// SPDX-License-Identifier: Apache-2.0
#include "read/pickle.h"

#include <gtest/gtest.h>

namespace tosaic::test {
namespace {

Result<Pickle> read(const std::string& text) { return read_pickle(Bytes::copy(text.data(), text.size())); }
std::string code(const std::string& text) {
  auto pickle = read(text);
  return pickle.ok() ? "" : pickle.error().code;
}
using namespace std::string_literals;

TEST(Pickle, plain_values) {
  auto p =
      read("\x80\x02(K\x05J\xff\xff\xff\xff\x8a\x02\x00\x80N\x88X\x02\x00\x00\x00hiG?\xf8\x00\x00\x00\x00\x00\x00t."s);
  ASSERT_TRUE(p.ok()) << p.error().message;
  const auto& root = (*p)[p->root];
  ASSERT_EQ(root.kind, PickleValue::tuple);
  ASSERT_EQ(root.items.size(), 7u);
  EXPECT_EQ((*p)[root.items[0]].number, 5);
  EXPECT_EQ((*p)[root.items[1]].number, -1);
  EXPECT_EQ((*p)[root.items[2]].number, -32768);
  EXPECT_EQ((*p)[root.items[3]].kind, PickleValue::none);
  EXPECT_EQ((*p)[root.items[4]].number, 1);
  EXPECT_EQ((*p)[root.items[5]].text_value, "hi");
  EXPECT_EQ((*p)[root.items[6]].real_number, 1.5);
}

TEST(Pickle, a_call_is_data_and_is_not_made) {
  auto p = read("\x80\x02"s + "cposix\nsystem\nX\x04\x00\x00\x00"s + "exit\x85R."s);
  ASSERT_TRUE(p.ok());
  const auto& root = (*p)[p->root];
  EXPECT_EQ(root.kind, PickleValue::call);
  EXPECT_EQ((*p)[root.callable].text_value, "posix.system");
}

TEST(Pickle, memo_shares_values) {
  auto p = read("\x80\x02]q\x01K\x01"s + "ah\x01\x86."s);
  ASSERT_TRUE(p.ok());
  const auto& root = (*p)[p->root];
  EXPECT_EQ(root.items[0], root.items[1]);
  EXPECT_EQ((*p)[root.items[0]].items.size(), 1u);
}

TEST(Pickle, broken_ones_are_refused) {
  EXPECT_EQ(code(""), "pickle.truncated");
  EXPECT_EQ(code("\x80\x02X\xff\xff\xff\x7f"s), "pickle.truncated");
  EXPECT_EQ(code("cabc"), "pickle.truncated");
  EXPECT_EQ(code("."), "pickle.bad");
  EXPECT_EQ(code("t."), "pickle.bad");
  EXPECT_EQ(code("(N0"s + "0."), "pickle.bad") << "nothing is popped from below a mark";
  EXPECT_EQ(code("h\x07."), "pickle.bad");
  EXPECT_EQ(code("\x8a\x09"s + std::string(9, '\1') + "."), "pickle.bad");
  EXPECT_EQ(code("\x82."), "pickle.unknown-opcode");
  EXPECT_EQ(code("N"s + std::string(5000000, '2') + "."), "pickle.bad");
}

}  // namespace
}  // namespace tosaic::test
