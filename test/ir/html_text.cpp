// SPDX-License-Identifier: Apache-2.0
#include "base/html_text.h"

#include <gtest/gtest.h>

namespace tosaic::test {
namespace {

TEST(HtmlText, no_text_becomes_markup) {
  EXPECT_EQ(html_text("conv.weight"), "conv.weight");
  EXPECT_EQ(html_text(R"(<b title="a">&amp;)"), "&lt;b title=&quot;a&quot;&gt;&amp;amp;");
}

}  // namespace
}  // namespace tosaic::test
