// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

OneNode reduction(const char* op, Operand x, std::int64_t axis, const char* nan_mode = nullptr) {
  Attrs attrs{{"axis", axis}};
  if (nan_mode) attrs.set("nan_mode", std::string(nan_mode));
  return {op, {std::move(x)}, std::move(attrs)};
}

TEST(Reduce, AlongEachAxis) {
  const Operand x = in(i32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(reduction("reduce_sum", x, 0).values(), (Doubles{8, 10, 12, 14, 16, 18}));
  EXPECT_EQ(reduction("reduce_sum", x, 1).values(), (Doubles{9, 12, 27, 30}));
  EXPECT_EQ(reduction("reduce_sum", x, 2).values(), (Doubles{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(reduction("reduce_sum", x, 1).inferred(), (TensorType{i32, {2, 1, 2}, std::nullopt}));
}

TEST(Reduce, EachOperator) {
  const Operand x = in(f32, {1, 3}, {2, -3, 4});
  EXPECT_EQ(reduction("reduce_sum", x, 1).values(), Doubles{3});
  EXPECT_EQ(reduction("reduce_product", x, 1).values(), Doubles{-24});
  EXPECT_EQ(reduction("reduce_max", x, 1, "propagate").values(), Doubles{4});
  EXPECT_EQ(reduction("reduce_min", x, 1, "propagate").values(), Doubles{-3});
  EXPECT_EQ(reduction("reduce_max", in(i8, {2}, {-128, -127}), 0, "propagate").values(), Doubles{-127});
  EXPECT_EQ(reduction("reduce_all", in(boolean, {2, 2}, {1, 1, 255, 0}), 1).values(), (Doubles{1, 0}));
  EXPECT_EQ(reduction("reduce_any", in(boolean, {2, 2}, {0, 0, 255, 0}), 1).values(), (Doubles{0, 1}));
}

TEST(Reduce, FloatsAccumulateInDoubleAndRoundOnce) {
  // In f16 arithmetic 2048 + 1 + 1 would stay 2048.
  EXPECT_EQ(reduction("reduce_sum", in(f16, {3}, {2048, 1, 1}), 0).values(), Doubles{2050});
  EXPECT_EQ(reduction("reduce_sum", in(f32, {3}, {1e8, 1, -1e8}), 0).values(), Doubles{1});
}

TEST(Reduce, PartialSumsMustFit) {
  EXPECT_EQ(reduction("reduce_sum", in(i32, {3}, {2147483647, 1, -5}), 0).unpredictable(),
            "reduce_sum: a partial result does not fit i32");
}

TEST(Reduce, Nan) {
  const Operand x = in(f32, {3}, {1, nan, 2});
  EXPECT_TRUE(std::isnan(reduction("reduce_max", x, 0, "propagate").values()[0]));
  EXPECT_TRUE(std::isnan(reduction("reduce_min", x, 0, "propagate").values()[0]));
  EXPECT_EQ(reduction("reduce_max", x, 0, "ignore").values(), Doubles{2});
  EXPECT_EQ(reduction("reduce_min", x, 0, "ignore").values(), Doubles{1});
  EXPECT_TRUE(std::isnan(reduction("reduce_max", in(f32, {2}, {nan, nan}), 0, "ignore").values()[0]));
}

TEST(Reduce, RefusesAnAxisThatIsNotThere) {
  EXPECT_EQ((OneNode{"reduce_sum", {in(i32, {2, 3})}, {{"axis", std::int64_t{2}}}, {{i32, {2, 3}, {}}}}).verify(),
            "reduce_sum.axis");
  EXPECT_EQ((OneNode{"argmax",
                     {in(i8, {2, 3})},
                     {{"axis", std::int64_t{-1}}, {"nan_mode", std::string("ignore")}},
                     {{i32, {2}, {}}}})
                .verify(),
            "argmax.axis");
  EXPECT_EQ((OneNode{"reduce_sum", {in(i32, {2, 3})}, {{"axis", std::int64_t{1}}}, {{i32, {2, 3}, {}}}}).verify(),
            "reduce_sum.output-shape");
  EXPECT_EQ((OneNode{"reduce_sum", {in(i32, {})}, {{"axis", std::int64_t{0}}}, {{i32, {}, {}}}}).verify(),
            "reduce_sum.rank");
}

TEST(ArgMax, IndexOfTheFirstLargest) {
  const Operand x = in(f32, {2, 3}, {1, 7, 7, 5, 2, 5});
  EXPECT_EQ(reduction("argmax", x, 1, "propagate").values(), (Doubles{1, 0}));
  EXPECT_EQ(reduction("argmax", x, 0, "propagate").values(), (Doubles{1, 0, 0}));
  EXPECT_EQ(reduction("argmax", x, 1, "propagate").inferred(), (TensorType{i32, {2}, std::nullopt}));
  EXPECT_EQ(reduction("argmax", in(i8, {3}, {-128, -128, -5}), 0, "propagate").values(), Doubles{2});
  EXPECT_EQ(reduction("argmax", in(f8e4m3, {3}, {1, 4, 2}), 0, "propagate").values(), Doubles{1});
  EXPECT_EQ(reduction("argmax", in(f32, {2}, {-inf, -inf}), 0, "propagate").values(), Doubles{0});
}

TEST(ArgMax, Nan) {
  const Operand x = in(f32, {4}, {1, nan, 9, nan});
  EXPECT_EQ(reduction("argmax", x, 0, "propagate").values(), Doubles{1});
  EXPECT_EQ(reduction("argmax", x, 0, "ignore").values(), Doubles{2});
  EXPECT_EQ(reduction("argmax", in(f32, {3}, {nan, -inf, nan}), 0, "ignore").values(), Doubles{1});
  EXPECT_EQ(reduction("argmax", in(f32, {2}, {nan, nan}), 0, "ignore").values(), Doubles{0});
}

}  // namespace
}  // namespace tosaic
