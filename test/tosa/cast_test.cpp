// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

OneNode cast(DType from, DType to, Doubles x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {"cast", {in(from, {n}, std::move(x))}, {}, {{to, {n}, std::nullopt}}};
}

TEST(Cast, FloatToIntegerRoundsToNearestEvenAndSaturates) {
  for (DType from : {f16, bf16, f32})
    EXPECT_EQ(cast(from, i8, {0.5, 1.5, 2.5, -0.5, -1.5, 1e4, -1e4, inf, -inf}).values(),
              (Doubles{0, 2, 2, 0, -2, 127, -128, 127, -128}));
  EXPECT_EQ(cast(f32, i32, {3e9, -3e9, 16777216}).values(), (Doubles{2147483647, -2147483648.0, 16777216}));
  EXPECT_EQ(cast(f32, i16, {40000, -32768.4}).values(), (Doubles{32767, -32768}));
  EXPECT_EQ(cast(f32, i8, {nan}).unpredictable(), "cast: NaN has no i8");
}

TEST(Cast, IntegerToIntegerDropsBits) {
  EXPECT_EQ(cast(i32, i8, {300, -129, 127}).values(), (Doubles{44, 127, 127}));
  EXPECT_EQ(cast(i32, i16, {65535}).values(), Doubles{-1});
  EXPECT_EQ(cast(i8, i32, {-128}).values(), Doubles{-128});
}

TEST(Cast, Booleans) {
  EXPECT_EQ(cast(i32, boolean, {0, 256, -1}).values(), (Doubles{0, 1, 1}));
  EXPECT_EQ(cast(boolean, i16, {0, 1, 255}).values(), (Doubles{0, 1, 1}));
}

TEST(Cast, IntegerToFloatRoundsOnce) {
  EXPECT_EQ(cast(i32, f32, {16777217, 2147483647}).values(), (Doubles{16777216, 2147483648.0}));
  EXPECT_EQ(cast(i32, f16, {2049, 70000}).values(), (Doubles{2048, inf}));
  EXPECT_EQ(cast(i16, bf16, {257}).values(), Doubles{256});
}

TEST(Cast, FloatToFloat) {
  EXPECT_EQ(cast(f32, f16, {1.0 / 3, 65520, -65519}).values(), (Doubles{0.333251953125, inf, -65504}));
  EXPECT_EQ(cast(f32, bf16, {1.00390625, 1.01171875}).values(), (Doubles{1, 1.015625}));
  EXPECT_EQ(cast(f32, f8e5m2, {57344, 61439, 61440, 1.125}).values(), (Doubles{57344, 57344, inf, 1}));
  const Doubles e4m3 = cast(f32, f8e4m3, {448, 464, 465, inf, 0.0009765625, 0.001953125}).values();
  EXPECT_EQ((Doubles{e4m3[0], e4m3[1], e4m3[4], e4m3[5]}), (Doubles{448, 448, 0, 0.001953125}));
  EXPECT_TRUE(std::isnan(e4m3[2]) && std::isnan(e4m3[3]));  // E4M3 has no infinity: overflow is NaN
  EXPECT_EQ(cast(f8e4m3, bf16, {240}).values(), Doubles{240});
  EXPECT_TRUE(std::isnan(cast(f16, f32, {nan}).values()[0]));
}

TEST(Cast, PreciseModeKeepsDoubles) { EXPECT_EQ(cast(f32, f16, {1.0f / 3}).values(true), Doubles{1.0f / 3}); }

TEST(Cast, TypesNeedTheirFeatures) {
  using tosa::Feature;
  EXPECT_EQ(cast(i8, i32, {0}).verify({Feature::pro_int}), "");
  EXPECT_EQ(cast(i8, i32, {0}).verify({Feature::pro_fp}), "cast.type");
  EXPECT_EQ(cast(i8, f32, {0}).verify({Feature::pro_fp}), "");
  EXPECT_EQ(cast(f32, f8e4m3, {0}).verify({Feature::pro_fp, Feature::fp8e4m3}), "");
  // Between bf16 and an 8-bit float both extensions are needed.
  EXPECT_EQ(cast(bf16, f8e4m3, {0}).verify({Feature::pro_fp, Feature::fp8e4m3}), "cast.type");
  EXPECT_EQ(cast(bf16, f8e4m3, {0}).verify({Feature::pro_fp, Feature::bf16}), "cast.type");
  EXPECT_EQ(cast(bf16, f8e4m3, {0}).verify({Feature::pro_fp, Feature::bf16, Feature::fp8e4m3}), "");
  for (auto [from, to] :
       {std::pair{boolean, f16}, {f16, boolean}, {f32, f32}, {f16, bf16}, {f8e4m3, f8e5m2}, {i48, i32}})
    EXPECT_EQ(cast(from, to, {0}).verify(), "cast.type") << name_of(from) << " to " << name_of(to);
  // Of TOSA 1.1.
  EXPECT_EQ(cast(boolean, f32, {0}).verify({Feature::pro_fp}), "cast.type");
  EXPECT_EQ(cast(boolean, f32, {0}).verify({Feature::pro_fp, Feature::v1_1}), "");
  EXPECT_EQ(cast(i64, i32, {0}).verify({Feature::pro_int, Feature::v1_1}), "cast.type");
  EXPECT_EQ(cast(i64, i32, {0}).verify({Feature::pro_int, Feature::v1_1, Feature::int64}), "");
}

}  // namespace
}  // namespace tosaic
