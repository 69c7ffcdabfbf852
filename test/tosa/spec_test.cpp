// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {
namespace {

TEST(Spec, TextParsesBack) {
  for (const char* text :
       {"TOSA-1.0+INT", "TOSA-1.0+FP", "TOSA-1.0+INT+FP+int4+int16+bf16+fp8e4m3+fp8e5m2+fft+variable",
        "TOSA-1.0+INT+controlflow+doubleround+inexactround+dynamic+8k"}) {
    auto spec = Spec::parse(text);
    ASSERT_TRUE(spec.ok()) << text << ": " << spec.error().message;
    EXPECT_EQ(spec->text(), text);
  }
  EXPECT_EQ(Spec::parse(Spec::everything().text())->text(), Spec::everything().text());
}

TEST(Spec, OrderAndCaseDoNotMatter) {
  EXPECT_EQ(Spec::parse("tosa-1.0+8K+INT16+int+cf")->text(), "TOSA-1.0+INT+int16+controlflow+8k");
}

TEST(Spec, LevelIsPartOfIt) {
  EXPECT_EQ(Spec::parse("TOSA-1.0+INT+8k")->level.max_rank, 6);
  EXPECT_EQ(Spec::parse("TOSA-1.0+INT")->level.max_rank, 32);
}

TEST(Spec, RefusesWhatTosaDoesNotHave) {
  for (const char* text : {"", "TOSA-0.80+INT", "TOSA-1.0", "TOSA-1.0+", "TOSA-1.0+INT+", "TOSA-1.0+INT+u55", "+INT",
                           "TOSA-1.0+FP+int16", "TOSA-1.0+INT+bf16"}) {
    auto spec = Spec::parse(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().code, "tosa.spec");
    EXPECT_FALSE(spec.error().help.empty());
  }
  EXPECT_EQ(Spec::parse("TOSA-1.0+FP+int16").error().message, "EXT-INT16 extends PRO-INT, which is not named");
}

}  // namespace
}  // namespace tosaic::tosa
