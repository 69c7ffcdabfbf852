// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace tosaic::test {
namespace {

TEST(Printable, what_is_text_stays) {
  for (const char* text : {"", "conv.weight",
                           "gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe6\xb7\xb1\xe5\xba\xa6", "\xf0\x9f\x98\x80", "\\x1b"})
    EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable("a\n\tb", true), "a\n\tb");
}

TEST(Printable, what_a_terminal_obeys_is_shown) {
  EXPECT_EQ(printable("a\n\tb\r"), "a\\n\\tb\\x0d");
  EXPECT_EQ(printable("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\x80"),
            "\\x9b31m\\x80");  // C1, as UTF-8
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");  // and as a byte
  EXPECT_EQ(printable("user\xe2\x80\xae"
                      "gnp.exe\xe2\x81\xa6\xe2\x80\xa8"),
            "user\\u202egnp.exe\\u2066\\u2028");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, what_is_no_utf8_is_shown) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");  // cut off
  EXPECT_EQ(printable("\xe6\xb7"
                      "x"),
            "\\xe6\\xb7x");                                                   // interrupted
  EXPECT_EQ(printable("\xc0\x8a\xe0\x80\x8a"), "\\xc0\\x8a\\xe0\\x80\\x8a");  // a line end, the long way
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");                    // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80\xf5"), "\\xf4\\x90\\x80\\x80\\xf5");  // beyond the last character
}

// Whatever the bytes: shown once is shown for good, and JSON takes it.
TEST(Printable, every_pair_of_bytes) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b)}, shown = printable(text);
      ASSERT_EQ(printable(shown), shown);
      for (std::size_t at = 0; at < shown.size();) {
        const Character c = character_at(std::string_view(shown).substr(at));
        ASSERT_TRUE(c.is_utf8 && !c.is_obeyed);
        at += c.bytes;
      }
      const std::string json = json_quote(text);
      for (std::size_t at = 0; at < json.size();) {
        const Character c = character_at(std::string_view(json).substr(at));
        ASSERT_TRUE(c.is_utf8 && !c.is_obeyed);
        at += c.bytes;
      }
    }
}

TEST(Printable, a_name_of_thousands_of_characters_leaves_the_sentence) {
  const std::string name(6000, 'n'), shown = render(error("a.b", "cannot read " + name + ": too long"), false);
  EXPECT_EQ(shown.find("error[a.b]: cannot read nnn"), 0u);
  EXPECT_LT(shown.size(), 600u);
  EXPECT_NE(shown.find("n[5501 more]n"), std::string::npos);
  EXPECT_NE(shown.find(": too long\n"), std::string::npos);
  std::string wide;
  for (int i = 0; i < 2000; ++i) wide += "\xe6\xb7\xb1";
  EXPECT_EQ(printable(render(error("a.b", wide), false), true), render(error("a.b", wide), false));
  EXPECT_NE(render_json(error("a.b", name)).find(name), std::string::npos);
}

TEST(Printable, json) {
  EXPECT_EQ(json_quote("a\"\\\n\x1b\xff\xc2\x9b\xe2\x80\xae"), R"("a\"\\\n\u001b\\xff\u009b\u202e")");
}

}  // namespace
}  // namespace tosaic::test
