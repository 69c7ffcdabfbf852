// SPDX-License-Identifier: Apache-2.0
// RESCALE and TABLE, and the integer scaling after them.
#include "ops/definitions/scaling.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

struct Rescale {
  Operand input;
  DType out = i8;
  std::vector<double> multiplier = {1 << 30}, shift = {30};
  double input_zp = 0, output_zp = 0;
  bool scale32 = true;
  std::string rounding = "single_round";
  bool per_channel = false, input_unsigned = false, output_unsigned = false;
  std::vector<TensorType> outputs = {};

  OneNode node() const {
    const auto scales = [](const Doubles& v) { return Shape{static_cast<std::int64_t>(v.size())}; };
    return {"rescale",
            {input, constant(scale32 ? i32 : i16, scales(multiplier), multiplier), constant(i8, scales(shift), shift),
             constant(input.type.dtype, {1}, {input_zp}), constant(out, {1}, {output_zp})},
            {{"scale32", scale32},
             {"rounding_mode", rounding},
             {"per_channel", per_channel},
             {"input_unsigned", input_unsigned},
             {"output_unsigned", output_unsigned}},
            outputs};
  }
};

TEST(Rescale, ScalesAndShiftsZeroPoints) {
  Rescale r{in(i8, {4}, {-128, -1, 0, 127})};
  EXPECT_EQ(r.node().inferred(), (TensorType{i8, {4}, {}}));
  EXPECT_EQ(r.node().values(), (Doubles{-128, -1, 0, 127}));
  r.shift = {31};  // one half, rounded half up
  EXPECT_EQ(r.node().values(), (Doubles{-64, 0, 0, 64}));
  r.input_zp = -128;
  r.output_zp = -100;
  EXPECT_EQ(r.node().values(), (Doubles{-100, -36, -36, 28}));
  r.shift = {29};
  EXPECT_EQ(r.node().values(), (Doubles{-100, 127, 127, 127}));
}

TEST(Rescale, EveryPairOfTypes) {
  for (DType from : {i8, i16, i32, i48})
    for (DType to : {i8, i16, i32}) {
      Rescale r{in(from, {2}, {-100, 101}), to};
      if (from == i48) r.scale32 = false, r.multiplier = {1 << 14}, r.shift = {14};
      EXPECT_EQ(r.node().values(), (Doubles{-100, 101})) << name_of(from) << " to " << name_of(to);
      r.outputs = {{to == i8 ? i16 : i8, {2}, {}}};
      EXPECT_EQ(r.node().verify(), "rescale.type");
    }
  EXPECT_EQ((Rescale{in(i16, {2}), i8}).node().verify({tosa::Feature::pro_int}), "");
  Rescale wide{in(i48, {2}), i8};
  wide.scale32 = false;
  EXPECT_EQ(wide.node().verify({tosa::Feature::pro_int}), "rescale.type");
  EXPECT_EQ(wide.node().verify({tosa::Feature::pro_int, tosa::Feature::int16}), "");
}

TEST(Rescale, SaturatesToEachOutput) {
  EXPECT_EQ((Rescale{in(i32, {2}, {-300, 300}), i8}).node().values(), (Doubles{-128, 127}));
  EXPECT_EQ((Rescale{in(i32, {2}, {-40000, 40000}), i16}).node().values(), (Doubles{-32768, 32767}));
}

TEST(Rescale, Unsigned) {
  // The bytes -1 and 1 are 255 and 1 when read as unsigned; the zero point -128 is 128.
  Rescale r{in(i8, {3}, {-1, 1, -128}), i16};
  r.input_unsigned = true;
  EXPECT_EQ(r.node().values(), (Doubles{255, 1, 128}));
  r.input_zp = -128;
  EXPECT_EQ(r.node().values(), (Doubles{127, -127, 0}));
  // Unsigned i16 with zero point 32768, which is -32768 in storage.
  Rescale u16{in(i16, {2}, {-32768, -1}), i16};
  u16.input_unsigned = true;
  u16.input_zp = -32768;
  EXPECT_EQ(u16.node().values(), (Doubles{0, 32767}));
  // Outputs clip to 0..255 and are stored as bytes.
  Rescale out{in(i8, {4}, {-128, -1, 1, 127}), i8};
  out.output_unsigned = true;
  EXPECT_EQ(out.node().values(), (Doubles{0, 0, 1, 127}));
  out.output_zp = -128;  // 128
  EXPECT_EQ(out.node().values(), (Doubles{0, 127, -127, -1}));
  Rescale wide{in(i16, {2}, {-32768, 32767}), i16};
  wide.output_unsigned = true;
  wide.output_zp = -32768;
  EXPECT_EQ(wide.node().values(), (Doubles{0, -1}));
}

TEST(Rescale, PerChannelAlongTheLastDim) {
  Rescale r{in(i32, {2, 3}, {8, 8, 8, -8, -8, -8})};
  r.per_channel = true;
  r.multiplier = {1 << 30, 1 << 30, 3 << 28};
  r.shift = {30, 32, 30};
  EXPECT_EQ(r.node().values(), (Doubles{8, 2, 6, -8, -2, -6}));
}

TEST(Rescale, SixteenBitMultipliers) {
  Rescale r{in(i48, {3}, {140737488355327.0, -140737488355328.0, 5})};
  r.out = i32;
  r.scale32 = false;
  r.multiplier = {32767};
  r.shift = {32};
  EXPECT_EQ(r.node().values(), (Doubles{1073709056, -1073709056, 0}));
  r.shift = {30};
  EXPECT_NE(r.node().unpredictable().find("cannot be scaled"), std::string::npos);
}

TEST(Rescale, RoundingModes) {
  // 2^-32 * 2^30 * value: double rounding adds another half of the 31st bit, away from zero.
  auto rounded = [](const char* mode, double value, double shift) {
    Rescale r{in(i32, {1}, {value}), i32};
    r.multiplier = {(1u << 30) + 5};
    r.shift = {shift};
    r.rounding = mode;
    return r.node().values().at(0);
  };
  EXPECT_EQ(rounded("single_round", 5, 33), 1);    // 0.625
  EXPECT_EQ(rounded("single_round", 3, 33), 0);    // 0.375
  EXPECT_EQ(rounded("double_round", 3, 33), 1);    // 0.375 + 0.125
  EXPECT_EQ(rounded("single_round", -4, 33), -1);  // -0.5 less a little
  EXPECT_EQ(rounded("double_round", -3, 33), -1);
  EXPECT_EQ(rounded("single_round", -3, 33), 0);
  EXPECT_EQ(rounded("double_round", 3, 31), 2);  // at 31 bits nothing is added
  EXPECT_EQ(rounded("single_round", 3, 31), 2);
  EXPECT_EQ(rounded("inexact_round", 5, 33), 1);
}

TEST(Rescale, RoundingModesNeedTheirExtensions) {
  Rescale r{in(i8, {1}, {1})};
  r.rounding = "double_round";
  EXPECT_EQ(r.node().verify({tosa::Feature::pro_int}), "rescale.rounding-mode");
  EXPECT_EQ(r.node().verify({tosa::Feature::pro_int, tosa::Feature::doubleround}), "");
  r.rounding = "inexact_round";
  EXPECT_EQ(r.node().verify({tosa::Feature::pro_int}), "rescale.rounding-mode");
  EXPECT_EQ(r.node().verify({tosa::Feature::pro_int, tosa::Feature::inexactround}), "");
}

TEST(Rescale, Requirements) {
  Rescale r{in(i32, {1}, {100})};
  r.multiplier = {-1};
  EXPECT_NE(r.node().unpredictable(), "");
  r.multiplier = {1};
  for (double shift : {1.0, 63.0}) {
    r.shift = {shift};
    EXPECT_NE(r.node().unpredictable(), "") << shift;
  }
  r.shift = {2};  // 100 is not below 2^(2-1)
  EXPECT_NE(r.node().unpredictable(), "");
  Rescale zp{in(i8, {1}, {127}), i8};
  zp.shift = {2};
  EXPECT_NE(zp.node().unpredictable(), "");
}

TEST(Rescale, Rules) {
  auto label = [](auto change) {
    Rescale r{in(i8, {2, 3})};
    change(r);
    return r.node().verify();
  };
  EXPECT_EQ(label([](Rescale&) {}), "");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i16, {1}), r.input_zp = 1; }), "rescale.input-zp");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i32, {1}), r.input_zp = 1; }), "rescale.input-zp");
  EXPECT_EQ(label([](Rescale& r) { r.out = i16, r.output_zp = 1; }), "rescale.output-zp");
  EXPECT_EQ(label([](Rescale& r) { r.out = i32, r.output_zp = 1; }), "rescale.output-zp");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i16, {1}), r.input_unsigned = true, r.input_zp = 1; }),
            "rescale.input-zp-u16");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i16, {1}), r.input_unsigned = true, r.input_zp = -32768; }), "");
  EXPECT_EQ(label([](Rescale& r) { r.out = i16, r.output_unsigned = true, r.output_zp = 5; }), "rescale.output-zp-u16");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i48, {1}); }), "rescale.scale32-i48");
  EXPECT_EQ(label([](Rescale& r) { r.scale32 = false, r.multiplier = {1}, r.rounding = "double_round"; }),
            "rescale.double-round");
  EXPECT_EQ(label([](Rescale& r) { r.input_unsigned = r.output_unsigned = true; }), "rescale.both-unsigned");
  EXPECT_EQ(label([](Rescale& r) { r.out = i32, r.input_unsigned = true; }), "rescale.unsigned-to-i32");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i32, {1}), r.output_unsigned = true; }), "rescale.i32-to-unsigned");
  auto wide = [](Rescale& r) { r.input = in(i48, {1}), r.scale32 = false, r.multiplier = {1}; };
  EXPECT_EQ(label([&](Rescale& r) { wide(r), r.output_unsigned = true; }), "rescale.i48-to-unsigned");
  EXPECT_EQ(label([&](Rescale& r) { wide(r), r.input_unsigned = true; }), "rescale.u48");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i32, {1}), r.input_unsigned = true; }), "rescale.u32-input");
  EXPECT_EQ(label([](Rescale& r) { r.out = i32, r.output_unsigned = true; }), "rescale.u32-output");
  EXPECT_EQ(label([](Rescale& r) { r.input = in(i8, {}), r.per_channel = true; }), "rescale.per-channel-rank");
  EXPECT_EQ(label([](Rescale& r) { r.multiplier = {1, 2, 3}; }), "rescale.multiplier-size");
  EXPECT_EQ(label([](Rescale& r) {
              r.per_channel = true, r.multiplier = {1, 2}, r.shift = {2, 2, 2};
            }),
            "rescale.multiplier-size");
  EXPECT_EQ(label([](Rescale& r) {
              r.per_channel = true, r.multiplier = {1, 2, 3}, r.shift = {2};
            }),
            "rescale.shift-size");
  OneNode node = Rescale{in(i8, {2})}.node();
  node.operands[1] = constant(i16, {1}, {1});
  EXPECT_EQ(node.verify(), "rescale.multiplier-type");
  node = Rescale{in(i8, {2})}.node();
  node.operands[3] = constant(i8, {2}, {1, 1});
  EXPECT_EQ(node.verify(), "rescale.input-zp-size");
  node = Rescale{in(i8, {2})}.node();
  node.operands[4] = constant(i8, {2}, {1, 1});
  EXPECT_EQ(node.verify(), "rescale.output-zp-size");
  node = Rescale{in(i8, {2})}.node();
  node.outputs = {{i8, {3}, {}}};
  EXPECT_EQ(node.verify(), "rescale.output-shape");
}

TEST(Scaling, ReciprocalIsExactForPowersAndClose) {
  for (std::uint32_t n = 1; n < 5000; ++n) {
    const auto scale = tosa::reciprocal_scale(n);
    EXPECT_GE(scale.multiplier, 1 << 30) << n;
    for (std::int64_t k : {-32768, -7, -1, 0, 1, 3, 32767})
      EXPECT_EQ(tosa::apply_scale_32(k * n, scale.multiplier, scale.shift, false), k) << n;
  }
}

TEST(Table, EightBits) {
  Doubles squares(256);
  for (int i = 0; i < 256; ++i) squares[static_cast<std::size_t>(i)] = 127 - i;
  const OneNode node{"table", {in(i8, {4}, {-128, -1, 0, 127}), constant(i8, {256}, squares)}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {4}, {}}));
  EXPECT_EQ(node.values(), (Doubles{127, 0, -1, -128}));
}

TEST(Table, SixteenBitsInterpolate) {
  Doubles entries(513);
  for (int i = 0; i < 513; ++i) entries[static_cast<std::size_t>(i)] = 10 * (i - 256);
  const OneNode node{"table", {in(i16, {5}, {-32768, -1, 0, 64, 32767}), constant(i16, {513}, entries)}};
  EXPECT_EQ(node.inferred(), (TensorType{i32, {5}, {}}));
  EXPECT_EQ(node.values(), (Doubles{-2560 * 128, -10, 0, 640, 2550 * 128 + 1270}));
}

TEST(Table, Rules) {
  EXPECT_EQ((OneNode{"table", {in(i8, {1}), constant(i8, {255}, Doubles(255))}}).verify(), "table.table-size");
  EXPECT_EQ((OneNode{"table", {in(i16, {1}), constant(i16, {256}, Doubles(256))}}).verify(), "table.table-size");
  EXPECT_EQ((OneNode{"table", {in(i8, {1}), constant(i16, {256}, Doubles(256))}}).verify(), "table.type");
  EXPECT_EQ((OneNode{"table", {in(i8, {1}), in(i8, {256})}}).verify({tosa::Feature::pro_int}), "table.constant");
  Doubles steep(513);
  steep[300] = 32767;
  steep[301] = -32768;
  EXPECT_NE((OneNode{"table", {in(i16, {1}, {(300 - 256) * 128}), constant(i16, {513}, steep)}}).unpredictable(), "");
}

}  // namespace
}  // namespace tosaic
