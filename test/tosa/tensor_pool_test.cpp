// SPDX-License-Identifier: Apache-2.0
// AVG_POOL2D and MAX_POOL2D.
#include <cmath>
#include <limits>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
using Ints = std::vector<std::int64_t>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Pool {
  std::string op;
  Operand input;
  Ints kernel = {2, 2}, stride = {1, 1}, pad = {0, 0, 0, 0};
  double input_zp = 0, output_zp = 0;
  std::string nan_mode = "propagate";
  DType acc = i32;
  std::vector<TensorType> outputs = {};

  OneNode node() const {
    Attrs attrs{{"kernel", kernel}, {"stride", stride}, {"pad", pad}};
    const DType type = input.type.dtype;
    if (op == "max_pool2d") {
      attrs.set("nan_mode", nan_mode);
      return {op, {input}, attrs, outputs};
    }
    attrs.set("acc_type", acc);
    return {op, {input, constant(type, {1}, {input_zp}), constant(type, {1}, {output_zp})}, attrs, outputs};
  }
};

TEST(MaxPool2d, LargestOfEachWindow) {
  Pool p{"max_pool2d", in(i8, {1, 2, 3, 2}, {1, -1, 5, -5, 2, -2, 3, -3, 4, -4, 6, -6})};
  EXPECT_EQ(p.node().inferred(), (TensorType{i8, {1, 1, 2, 2}, {}}));
  EXPECT_EQ(p.node().values(), (Doubles{5, -1, 6, -2}));
  p.pad = {1, 1, 1, 0};
  p.stride = {2, 1};
  EXPECT_EQ(p.node().values(), (Doubles{1, -1, 5, -1, 5, -2, 3, -3, 4, -3, 6, -4}));
  p.input = in(i8, {1, 1, 1, 1}, {-128});
  p.pad = {1, 0, 1, 0};
  p.stride = {1, 1};
  EXPECT_EQ(p.node().values(), Doubles{-128});
}

TEST(MaxPool2d, Nan) {
  Pool p{"max_pool2d", in(f32, {1, 1, 3, 1}, {1, nan, -2}), {1, 2}};
  const Doubles propagated = p.node().values();
  EXPECT_TRUE(std::isnan(propagated[0]) && std::isnan(propagated[1]));
  p.nan_mode = "ignore";
  EXPECT_EQ(p.node().values(), (Doubles{1, -2}));
  p.input = in(f32, {1, 1, 2, 1}, {nan, nan});
  EXPECT_TRUE(std::isnan(p.node().values()[0]));
  for (DType type : {f16, bf16, f8e4m3, f8e5m2})
    EXPECT_EQ((Pool{"max_pool2d", in(type, {1, 1, 2, 1}, {-2, 1.5}), {1, 2}}).node().values(), Doubles{1.5});
}

TEST(AvgPool2d, PaddingDoesNotCount) {
  Pool p{"avg_pool2d", in(i8, {1, 2, 2, 1}, {10, 20, 30, 40})};
  EXPECT_EQ(p.node().values(), Doubles{25});
  p.pad = {1, 1, 1, 1};
  EXPECT_EQ(p.node().values(), (Doubles{10, 15, 20, 20, 25, 30, 30, 35, 40}));
  p.input = in(f32, {1, 2, 2, 1}, {10, 20, 30, 40});
  p.acc = f32;
  EXPECT_EQ(p.node().values(), (Doubles{10, 15, 20, 20, 25, 30, 30, 35, 40}));
}

TEST(AvgPool2d, IntegersRoundByTheReciprocal) {
  // multiplier ((1 << 30) + 1) << k / count, shift 30 + k: the multiplier is a little
  // too large, so that halves round away from zero.
  auto mean = [](Doubles values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return Pool{"avg_pool2d", in(i8, {1, 1, n, 1}, std::move(values)), {1, n}}.node().values().at(0);
  };
  EXPECT_EQ(mean({2, 3}), 3);
  EXPECT_EQ(mean({-2, -3}), -3);
  EXPECT_EQ(mean({2, 2, 3}), 2);
  EXPECT_EQ(mean({2, 3, 3}), 3);
  EXPECT_EQ(mean({-2, -3, -3}), -3);
  EXPECT_EQ(mean(Doubles(7, -128)), -128);
  EXPECT_EQ(mean(Doubles(7, 127)), 127);
  EXPECT_EQ(mean({0, 0, 0, 0, 1, 1, 1}), 0);
  EXPECT_EQ(mean({0, 0, 0, 1, 1, 1, 1}), 1);
}

TEST(AvgPool2d, ZeroPointsAndSaturation) {
  Pool p{"avg_pool2d", in(i8, {1, 1, 2, 1}, {10, 20}), {1, 2}};
  p.input_zp = 5;
  p.output_zp = -3;
  EXPECT_EQ(p.node().values(), Doubles{7});
  p.input_zp = -128;
  p.output_zp = 127;
  EXPECT_EQ(p.node().values(), Doubles{127});
  EXPECT_EQ((Pool{"avg_pool2d", in(i16, {1, 1, 2, 1}, {-32768, -32768}), {1, 2}}).node().values(), Doubles{-32768});
}

TEST(AvgPool2d, Types) {
  for (auto [type, acc] : std::initializer_list<std::pair<DType, DType>>{
           {f16, f16}, {f16, f32}, {f32, f32}, {bf16, f32}, {f8e4m3, f16}, {f8e5m2, f16}}) {
    Pool p{"avg_pool2d", in(type, {1, 1, 2, 1}, {1, 2}), {1, 2}};
    p.acc = acc;
    EXPECT_EQ(p.node().values(), Doubles{1.5}) << name_of(type);
  }
  Pool p{"avg_pool2d", in(f32, {1, 1, 2, 1}, {1, 2}), {1, 2}};
  p.acc = f16;
  EXPECT_EQ(p.node().verify(), "avg_pool2d.type");
}

class Pools : public testing::TestWithParam<std::string> {};
TEST_P(Pools, Rules) {
  const std::string op = GetParam();
  const Pool good{op, in(i8, {1, 4, 4, 1})};
  const std::vector<TensorType> out{good.node().inferred()};
  EXPECT_EQ(good.node().verify(), "");
  auto verify = [&](auto change) {
    Pool p = good;
    p.outputs = out;
    change(p);
    const std::string label = p.node().verify();
    return label.starts_with(op + ".") ? label.substr(op.size() + 1) : label;
  };
  EXPECT_EQ(verify([](Pool& p) { p.kernel = {0, 2}; }), "kernel");
  EXPECT_EQ(verify([](Pool& p) { p.kernel = {2}; }), "attribute-length");
  EXPECT_EQ(verify([](Pool& p) { p.pad = {0, 0}; }), "attribute-length");
  EXPECT_EQ(verify([](Pool& p) { p.stride = {1, 1, 1}; }), "attribute-length");
  EXPECT_EQ(verify([](Pool& p) { p.stride = {1, 0}; }), "stride");
  EXPECT_EQ(verify([](Pool& p) { p.pad = {0, -1, 0, 0}; }), "pad");
  EXPECT_EQ(verify([](Pool& p) { p.pad = {2, 0, 0, 0}; }), "pad-kernel");
  EXPECT_EQ(verify([](Pool& p) { p.pad = {0, 0, 0, 2}; }), "pad-kernel");
  EXPECT_EQ(verify([](Pool& p) { p.kernel = {5, 2}; }), "output-size");
  EXPECT_EQ(verify([](Pool& p) { p.kernel = {3, 3}, p.stride = {2, 2}; }), "output-size");
  EXPECT_EQ(verify([](Pool& p) { p.outputs[0].shape = Shape{1, 4, 3, 1}; }), "output-shape");
  EXPECT_EQ(verify([](Pool& p) { p.outputs[0].dtype = i16; }), "type");
}
TEST_P(Pools, Levels) {
  const std::string op = GetParam();
  const tosa::Spec spec({tosa::Feature::pro_int}, tosa::level_8k);
  EXPECT_EQ((Pool{op, in(i8, {1, 9000, 1, 1}), {8193, 1}}).node().verify(spec), op + ".level-kernel");
  EXPECT_EQ((Pool{op, in(i8, {1, 9000, 1, 1}), {807, 1}, {8193, 1}}).node().verify(spec), op + ".level-stride");
  EXPECT_EQ((Pool{op, in(i8, {1, 9000, 1, 1}), {8192, 1}}).node().verify(spec), "");
}
INSTANTIATE_TEST_SUITE_P(All, Pools, testing::Values("max_pool2d", "avg_pool2d"),
                         [](const auto& i) { return i.param; });

TEST(AvgPool2d, ZeroPointRules) {
  Pool p{"avg_pool2d", in(i16, {1, 2, 2, 1})};
  p.input_zp = 1;
  EXPECT_EQ(p.node().verify(), "avg_pool2d.input-zp");
  p.input_zp = 0;
  p.output_zp = 1;
  EXPECT_EQ(p.node().verify(), "avg_pool2d.output-zp");
  OneNode node = Pool{"avg_pool2d", in(i8, {1, 2, 2, 1})}.node();
  node.operands[2] = constant(i8, {2}, {0, 0});
  EXPECT_EQ(node.verify(), "avg_pool2d.output-zp-size");
}

}  // namespace
}  // namespace tosaic
