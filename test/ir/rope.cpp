// SPDX-License-Identifier: Apache-2.0
// Files as pieces: what they are together, and what of them is equal.
#include "base/rope.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <numeric>

#include "base/system/output.h"

namespace tosaic {
namespace {

Bytes text(std::string_view t) { return Bytes::copy(t.data(), t.size()); }

Rope cut(std::initializer_list<std::string_view> chunks) {
  Rope rope;
  for (std::string_view p : chunks) rope.append(text(p));
  return rope;
}

TEST(Rope, IsItsPiecesOneBehindTheOther) {
  Rope rope = cut({"ab", "", "c"});
  rope.zeros(2);
  rope.append(cut({"d", "ef"}));
  EXPECT_EQ(rope.size(), 8u);
  EXPECT_EQ(rope.joined().text(), std::string_view("abc\0\0def", 8));
  EXPECT_TRUE(Rope().joined().null());
  EXPECT_FALSE(Rope(text("")).joined().null()) << "empty is not null";
  const Bytes one = text("one");
  EXPECT_EQ(Rope(one).joined().data(), one.data()) << "one piece is not copied";
  Rope zeros;
  zeros.zeros(10000);
  EXPECT_EQ(zeros.size(), 10000u);
  EXPECT_EQ(zeros.joined().text().find_first_not_of('\0'), std::string_view::npos);
}

TEST(Rope, EqualHoweverCut) {
  EXPECT_TRUE(cut({"abc", "def"}) == cut({"a", "bcde", "f"}));
  EXPECT_FALSE(cut({"abc", "def"}) == cut({"a", "bcdX", "f"}));
  EXPECT_FALSE(cut({"abc"}) == cut({"abc", "d"}));
  EXPECT_TRUE(Rope() == Rope(text("")));
  EXPECT_EQ(hash_of(cut({"abc", "def"})), hash_of(text("abcdef")));
  EXPECT_EQ(glance_at(cut({"abc", "def"})), glance_at(cut({"abc", "def"})));
  EXPECT_NE(glance_at(text("abc")), glance_at(text("abd")));
}

TEST(Rope, IsReadInStretches) {
  const Rope rope = cut({"abc", "", "defg", "h"});
  RopeReader reader(rope);
  EXPECT_TRUE(reader.next(0).empty());
  EXPECT_TRUE(reader.next(2) == cut({"ab"}));
  const Rope views = reader.next(3);
  EXPECT_TRUE(views == cut({"cde"}));
  EXPECT_EQ(views.chunks()[0].data(), rope.chunks()[0].data() + 2) << "nothing is copied";
  char one = 0;
  reader.next(1, &one);
  EXPECT_EQ(one, 'f');
  EXPECT_TRUE(reader.next(2) == cut({"gh"}));
}

TEST(Rope, Digests) {
  EXPECT_EQ(digest_of(cut({"abc", "def"}), 1), digest_of(cut({"a", "bcdef"}), 1));
  EXPECT_NE(digest_of(cut({"abc"}), 1), digest_of(cut({"abd"}), 1));
  EXPECT_NE(digest_of(cut({"abc"}), 1), digest_of(cut({"abc"}), 2));
}

// More pieces than one call of the system takes.
TEST(Rope, IsWrittenWhole) {
  std::vector<int> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 0);
  Rope rope;
  for (int& n : numbers) rope.append(Bytes::copy(&n, sizeof n));
  const std::string path = (std::filesystem::temp_directory_path() / "tosaic_rope_test.bin").string();
  ASSERT_TRUE(write_file(path, rope).ok());
  const auto back = map_file(path);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == Bytes::of(numbers));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tosaic
