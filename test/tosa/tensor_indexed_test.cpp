// SPDX-License-Identifier: Apache-2.0
// MATMUL, GATHER, SCATTER, FFT2D, RFFT2D, IDENTITY.
#include <cmath>
#include <numbers>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

OneNode matmul(Operand a, Operand b, double a_zp = 0, double b_zp = 0) {
  const DType type = a.type.dtype;
  return {"matmul", {std::move(a), std::move(b), constant(type, {1}, {a_zp}), constant(type, {1}, {b_zp})}};
}

TEST(MatMul, ByHand) {
  EXPECT_EQ(matmul(in(i8, {1, 2, 2}, {1, 2, 3, 4}), in(i8, {1, 2, 3}, {1, 0, 2, 0, 1, 3})).values(),
            (Doubles{1, 2, 8, 3, 4, 18}));
  EXPECT_EQ(matmul(in(i8, {1, 1, 2}, {3, 4}), in(i8, {1, 2, 1}, {6, 7}), 1, 5).values(), Doubles{2 * 1 + 3 * 2});
  // Batches stay apart.
  EXPECT_EQ(matmul(in(f32, {2, 1, 1}, {2, 3}), in(f32, {2, 1, 1}, {10, 100})).values(), (Doubles{20, 300}));
}

TEST(MatMul, Types) {
  auto type_of = [](DType type, std::vector<TensorType> outputs = {}) {
    OneNode node = matmul(in(type, {1, 1, 1}, {2}), in(type, {1, 1, 1}, {3}));
    node.outputs = std::move(outputs);
    EXPECT_EQ(node.values(), Doubles{6});
    return node.inferred().dtype;
  };
  EXPECT_EQ(type_of(i8), i32);
  EXPECT_EQ(type_of(i16), i48);
  EXPECT_EQ(type_of(f16), f16);
  EXPECT_EQ(type_of(f16, {{f32, {1, 1, 1}, {}}}), f32);
  EXPECT_EQ(type_of(f32), f32);
  EXPECT_EQ(type_of(bf16), f32);
  EXPECT_EQ(type_of(f8e4m3), f16);
  EXPECT_EQ(type_of(f8e5m2), f16);
}

TEST(MatMul, WideSums) {
  EXPECT_EQ(matmul(in(i16, {1, 1, 3}, {-32768, -32768, 32767}), in(i16, {1, 3, 1}, {-32768, -32768, 32767})).values(),
            Doubles{3221159937.0 - 0});
  // 2^18 products of 2^30 leave 48 bits.
  const std::int64_t n = 1 << 18;
  EXPECT_EQ(matmul(in(i16, {1, 1, n}, Doubles(n, -32768)), in(i16, {1, n, 1}, Doubles(n, -32768))).unpredictable(),
            "matmul: a sum does not fit the accumulator's i48");
}

TEST(MatMul, Rules) {
  EXPECT_EQ(matmul(in(i8, {2, 1, 1}), in(i8, {1, 1, 1})).verify(), "matmul.batch");
  EXPECT_EQ(matmul(in(i8, {1, 1, 2}), in(i8, {1, 1, 1})).verify(), "matmul.inner-size");
  EXPECT_EQ(matmul(in(i16, {1, 1, 1}), in(i16, {1, 1, 1}), 1, 0).verify(), "matmul.a-zp");
  EXPECT_EQ(matmul(in(f32, {1, 1, 1}), in(f32, {1, 1, 1}), 0, 1).verify(), "matmul.b-zp");
  OneNode node = matmul(in(i8, {1, 1, 1}), in(i8, {1, 1, 1}));
  node.operands[2] = constant(i8, {2}, {0, 0});
  EXPECT_EQ(node.verify(), "matmul.a-zp-size");
  EXPECT_EQ(matmul(in(i8, {1, 1, 1}), in(i16, {1, 1, 1})).verify(), "matmul.type");
}

TEST(Gather, PicksRows) {
  const Operand values = in(i16, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const OneNode node{"gather", {values, in(i32, {2, 2}, {2, 0, 1, 1})}};
  EXPECT_EQ(node.inferred(), (TensorType{i16, {2, 2, 2}, {}}));
  EXPECT_EQ(node.values(), (Doubles{5, 6, 1, 2, 9, 10, 9, 10}));
  EXPECT_EQ((OneNode{"gather", {in(f32, {1, 2, 1}, {0.5, 1.5}), in(i32, {1, 1}, {1})}}).values(true), Doubles{1.5});
}
TEST(Gather, Rules) {
  EXPECT_EQ((OneNode{"gather", {in(i8, {1, 2, 1}), in(i32, {2, 2})}}).verify(), "gather.batch");
  EXPECT_EQ((OneNode{"gather", {in(i8, {1, 2, 1}), in(i16, {1, 2})}}).verify(), "gather.type");
  for (double index : {-1.0, 2.0})
    EXPECT_NE((OneNode{"gather", {in(i8, {1, 2, 1}, {1, 2}), in(i32, {1, 1}, {index})}}).unpredictable(), "");
}

TEST(Scatter, PutsRows) {
  const OneNode node{
      "scatter",
      {in(i8, {2, 3, 1}, {1, 2, 3, 4, 5, 6}), in(i32, {2, 2}, {2, 0, 1, 2}), in(i8, {2, 2, 1}, {10, 20, 30, 40})}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {2, 3, 1}, {}}));
  EXPECT_EQ(node.values(), (Doubles{20, 2, 10, 4, 30, 40}));
}
TEST(Scatter, Rules) {
  EXPECT_EQ((OneNode{"scatter", {in(i8, {1, 3, 1}), in(i32, {2, 2}), in(i8, {1, 2, 1})}}).verify(), "scatter.batch");
  EXPECT_EQ((OneNode{"scatter", {in(i8, {1, 3, 1}), in(i32, {1, 2}), in(i8, {1, 3, 1})}}).verify(), "scatter.rows");
  EXPECT_EQ((OneNode{"scatter", {in(i8, {1, 3, 1}), in(i32, {1, 2}), in(i8, {1, 2, 2})}}).verify(), "scatter.channels");
  EXPECT_NE((OneNode{"scatter", {in(i8, {1, 3, 1}, {1, 2, 3}), in(i32, {1, 2}, {1, 1}), in(i8, {1, 2, 1}, {1, 2})}})
                .unpredictable(),
            "");
  EXPECT_NE((OneNode{"scatter", {in(i8, {1, 3, 1}, {1, 2, 3}), in(i32, {1, 1}, {3}), in(i8, {1, 1, 1}, {1})}})
                .unpredictable(),
            "");
}

Doubles part(const OneNode& node, std::size_t i) {
  const auto result = node.run();
  if (!result.ok()) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  const auto data = (*result)[i].data.as<float>();
  return {data.begin(), data.end()};
}

TEST(Fft2d, AgreesWithTheDefinitionAndItsInverse) {
  constexpr int h = 4, w = 8;
  Doubles real(h * w), imag(h * w);
  for (std::size_t i = 0; i < real.size(); ++i)
    real[i] = std::sin(static_cast<double>(3 * i)), imag[i] = std::cos(static_cast<double>(5 * i));
  const OneNode node{
      "fft2d", {in(f32, {1, h, w}, real), in(f32, {1, h, w}, imag)}, {{"inverse", false}, {"local_bound", false}}};
  const Doubles out_real = part(node, 0), out_imag = part(node, 1);
  for (int oy = 0; oy < h; ++oy)
    for (int ox = 0; ox < w; ++ox) {
      double re = 0, im = 0;
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
          const double a = 2 * std::numbers::pi * (static_cast<double>(y * oy) / h + static_cast<double>(x * ox) / w);
          const auto i = static_cast<std::size_t>(y * w + x);
          re += real[i] * std::cos(a) + imag[i] * std::sin(a);
          im += imag[i] * std::cos(a) - real[i] * std::sin(a);
        }
      EXPECT_NEAR(out_real[static_cast<std::size_t>(oy * w + ox)], re, 1e-5);
      EXPECT_NEAR(out_imag[static_cast<std::size_t>(oy * w + ox)], im, 1e-5);
    }
  const OneNode back{"fft2d",
                     {in(f32, {1, h, w}, out_real), in(f32, {1, h, w}, out_imag)},
                     {{"inverse", true}, {"local_bound", true}}};
  const Doubles again = part(back, 0);
  for (std::size_t i = 0; i < real.size(); ++i) EXPECT_NEAR(again[i] / (h * w), real[i], 1e-6);
}

TEST(Rfft2d, IsHalfOfTheComplexTransform) {
  Doubles real(2 * 4 * 8);
  for (std::size_t i = 0; i < real.size(); ++i) real[i] = std::sin(static_cast<double>(7 * i));
  const OneNode half{"rfft2d", {in(f32, {2, 4, 8}, real)}, {{"local_bound", false}}};
  EXPECT_EQ(half.inferred(), (TensorType{f32, {2, 4, 5}, {}}));
  const OneNode full{"fft2d",
                     {in(f32, {2, 4, 8}, real), in(f32, {2, 4, 8}, Doubles(64))},
                     {{"inverse", false}, {"local_bound", false}}};
  for (std::size_t p : {0u, 1u}) {
    const Doubles some = part(half, p), all = part(full, p);
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t x = 0; x < 5; ++x) EXPECT_EQ(some[row * 5 + x], all[row * 8 + x]);
  }
  // What is real by symmetry has no rounding noise in its imaginary part.
  const Doubles imag = part(half, 1);
  for (std::size_t i : {0u, 4u, 10u, 14u}) EXPECT_EQ(imag[i], 0);
}

TEST(Fft, Rules) {
  const Attrs attrs{{"inverse", false}, {"local_bound", false}}, real_attrs{{"local_bound", false}};
  EXPECT_EQ((OneNode{"fft2d", {in(f32, {1, 4, 4}), in(f32, {1, 4, 8})}, attrs}).verify(), "fft2d.shapes");
  EXPECT_EQ((OneNode{"fft2d", {in(f32, {1, 6, 4}), in(f32, {1, 6, 4})}, attrs}).verify(), "fft2d.power-of-two");
  EXPECT_EQ((OneNode{"rfft2d", {in(f32, {1, 4, 12})}, real_attrs}).verify(), "rfft2d.power-of-two");
  EXPECT_EQ((OneNode{"rfft2d", {in(f32, {1, 4, 4})}, real_attrs}).verify({tosa::Feature::pro_fp}), "rfft2d.type");
  const tosa::Spec level({tosa::Feature::pro_fp, tosa::Feature::fft}, tosa::level_8k);
  EXPECT_EQ((OneNode{"rfft2d", {in(f32, {1, 1, 16384})}, real_attrs}).verify(level), "rfft2d.level-kernel");
  EXPECT_EQ((OneNode{"fft2d", {in(f32, {1, 16384, 1}), in(f32, {1, 16384, 1})}, attrs}).verify(level),
            "fft2d.level-kernel");
}

TEST(Identity, KeepsEverything) {
  Operand x = in(i8, {2}, {3, -4});
  x.type.scales = Scales{{0.5}, {1}};
  const OneNode node{"identity", {x}};
  EXPECT_EQ(node.inferred(), x.type);
  EXPECT_EQ(node.values(), (Doubles{3, -4}));
  EXPECT_EQ((OneNode{"identity", {in(f32, {}, {2.5})}}).values(true), Doubles{2.5});
}

}  // namespace
}  // namespace tosaic
