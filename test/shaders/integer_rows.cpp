// SPDX-License-Identifier: Apache-2.0
// Rows of integers in few dispatches, though RESCALEs have more numbers than push constants: softmax and norms, scales
// of channels, and what finishes products behind RESHAPE and before TRANSPOSE.
#include <fmt/format.h>

#include "shaders/computed.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

class IntegerRows : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

std::vector<std::string> kernels(const Net& net) {
  std::vector<std::string> names;
  const auto program = compiled(net.graph, base);
  for (const auto& d : program.tiers.at(0).dispatches) names.push_back(d.kernel);
  return names;
}
using Names = std::vector<std::string>;

ValueId normalised_integers(Net& net, ValueId x) {
  const ValueId mean = narrow(net, along_last(net, "reduce_sum", wide(net, x)), 38);
  const ValueId centred = wide(net, narrow(net, net.node("sub", {wide(net, x), wide(net, mean)}), 31));
  const ValueId squares = wide(net, narrow(net, product(net, centred, centred), 46));
  const ValueId root = looked_up(net, narrow(net, along_last(net, "reduce_sum", squares), 38));
  return narrow(net, product(net, centred, wide(net, root)), 44);
}

// A depthwise convolution of one pixel, and its RESCALE.
ValueId scaled_channels(Net& net, ValueId x, double most_bias) {
  const TensorType type = net.graph[x].type;
  const bool wide = type.dtype == DType::i16;
  const std::int64_t channels = type.shape.size(type.shape.rank() - 1);
  const ValueId image = shaped(net, x, {1, 1, type.shape.elements() / channels, channels});
  const ValueId sums =
      net.node("depthwise_conv2d",
               {image, net.constant(DType::i8, {1, 1, channels, 1}, -127, 127),
                net.constant(wide ? DType::i48 : DType::i32, {channels}, -most_bias, most_bias),
                net.numbers(type.dtype, {wide ? 0 : 7}), net.numbers(DType::i8, {0})},
               steps({0, 0, 0, 0}, {1, 1}, wide ? DType::i48 : DType::i32), wide ? DType::i48 : DType::i32);
  return net.rescale(sums, DType::i8, wide ? 28 : 38, wide ? 30 : 40, true, 0, 5);
}

TEST_F(IntegerRows, OfEveryLength) {
  for (std::int64_t size : {16, 17, 130, 577, 4000})
    for (std::int64_t rows : {1, 5, 2100}) {
      if (rows * size > 60000) continue;
      Net net(5);
      const ValueId x = net.input(DType::i16, {1, rows, size}, -9000, 9000);
      net.output(softmax_of_integers(net, x));
      net.output(normalised_integers(net, x));
      EXPECT_EQ(kernels(net), (Names{"rows", "rows"})) << rows << " of " << size;
      expect_on_device(net, {}, fmt::format("{} rows of {}", rows, size));
    }
}

TEST_F(IntegerRows, WithTheScalesOfTheirChannels) {
  Net net(6);
  net.output(scaled_channels(net, normalised_integers(net, net.input(DType::i16, {1, 9, 52}, -9000, 9000)), 90000));
  EXPECT_EQ(kernels(net), Names{"rows"});
  expect_on_device(net);
}

TEST_F(IntegerRows, ScalesOfChannelsAreElementwise) {
  for (DType type : {DType::i8, DType::i16}) {
    Net net(7);
    const double most = static_cast<double>(range_of(type).highest);
    net.output(scaled_channels(net, net.input(type, {3, 7, 20}, -most - 1, most), 90000));
    EXPECT_EQ(kernels(net), Names{"elementwise"}) << name_of(type);
    expect_on_device(net, {}, std::string(name_of(type)));
  }
}

TEST_F(IntegerRows, ScalesThatNeedMoreThan32BitsAreNot) {
  Net net(8);
  net.output(scaled_channels(net, net.input(DType::i16, {3, 7, 20}, -32768, 32767), 4e9));
  EXPECT_EQ(kernels(net), Names{"depthwise_conv2d"});
  expect_on_device(net);
}

// RESHAPE between what finishes a product is none of its business.
TEST_F(IntegerRows, ProductsAreFinishedBehindViews) {
  Net net(9);
  const ValueId sums = plain(net, net.input(DType::i8, {1, 1, 33, 24}, -128, 127), 36, {1, 1}, {0, 0, 0, 0}, {1, 1});
  const ValueId branch = shaped(net, net.rescale(sums, DType::i8, 39, 41, true, 0, 3), {1, 33, 36});
  const ValueId looked = net.node("table", {branch, net.constant(DType::i8, {256}, -128, 127)});
  const ValueId a = net.rescale(shaped(net, looked, {33, 36}), DType::i32, 12, 12, false, -4);
  const ValueId b = net.rescale(net.input(DType::i8, {33, 36}, -128, 127), DType::i32, 12, 12, false, 9);
  net.output(net.rescale(net.node("add", {a, b}), DType::i8, 50, 50, false, 0, 1));
  EXPECT_EQ(kernels(net).size(), 1u);
  expect_on_device(net);
}

// What is seen in its first shape, too, stays in it.
TEST_F(IntegerRows, ViewsOfWhatIsSeen) {
  Net net(10);
  const ValueId none = net.zero(DType::i8);
  const ValueId sums = net.node("matmul", {net.input(DType::i8, {2, 9, 24}, -128, 127),
                                           net.input(DType::i8, {2, 24, 20}, -128, 127), none, none});
  const ValueId made = net.rescale(sums, DType::i8, 39, 41, true, 0, 3);
  net.output(made);
  net.output(net.node("table", {shaped(net, made, {18, 20}), net.constant(DType::i8, {256}, -128, 127)}));
  // Of other channels: each has numbers of its own.
  net.output(shaped(net, net.rescale(sums, DType::i8, 38, 42, true, 0, 3), {18, 4, 5}));
  expect_on_device(net);
}

TEST_F(IntegerRows, ProductsAreFinishedWhereTheyAreMoved) {
  for (bool per_channel : {false, true})
    for (std::int64_t width : {16, 5}) {
      Net net(11);
      const ValueId none = net.zero(DType::i8);
      const ValueId sums = net.node("matmul", {net.input(DType::i8, {3, 40, 24}, -128, 127),
                                               net.input(DType::i8, {3, 24, width}, -128, 127), none, none});
      const ValueId made = net.rescale(sums, DType::i8, 39, 41, per_channel, 0, 3);
      const ValueId moved =
          net.node("transpose", {shaped(net, made, {1, 3, 40, width})}, {{"perms", Sizes{0, 2, 1, 3}}});
      net.output(shaped(net, moved, {1, 40, 3 * width}));
      EXPECT_EQ(kernels(net).size(), per_channel ? 2u : 1u);
      expect_on_device(net, {}, fmt::format("{} wide, per channel {}", width, per_channel));
    }
}

// By any shift, of values of which it is known how large they are, and of others.
TEST_F(IntegerRows, ScaledByEveryShift) {
  for (int shift = 2; shift <= 62; shift += 1 + shift / 40)
    for (const bool per_channel : {false, true}) {
      Net net(13);
      const ValueId none = net.zero(DType::i8), byte = net.input(DType::i8, {2, 5, 24}, -128, 127),
                    half = net.input(DType::i16, {2, 5, 24}, -32768, 32767);
      const ValueId sums = net.node("matmul", {net.constant(DType::i8, {2, 5, 5}, -128, 127), byte, none, none});
      const auto scaled = [&](ValueId v, int least, std::int64_t zero_point) {
        const int by = std::max(shift, least);
        net.output(net.rescale(v, DType::i32, by, std::min(by + 1, 62), per_channel, zero_point));
      };
      scaled(byte, 9, 100);
      scaled(half, 17, 0);
      scaled(shaped(net, sums, {10, 24}), 24, 0);
      scaled(net.input(DType::i32, {10, 24}, -2147483647, 2147483647), 32, 0);
      expect_of_every_tier(net, {}, fmt::format("by {} bits, per channel {}", shift, per_channel));
    }
}

// More numbers than there are push constants, of one dispatch.
TEST_F(IntegerRows, ManyNumbers) {
  Net net(12);
  ValueId v = net.input(DType::i8, {5, 7, 12}, -128, 127);
  for (int i = 0; i < 11; ++i) v = net.rescale(v, DType::i8, 30, 31, false, net.integer(-9, 9), net.integer(-9, 9));
  net.output(net.node("add", {wide(net, v), net.input(DType::i32, {1, 7, 1}, -900, 900)}));
  const auto program = compiled(net.graph, base);
  ASSERT_EQ(program.tiers.at(0).dispatches.size(), 1u);
  EXPECT_EQ(program.tiers.at(0).dispatches[0].pushes.size(), vulkan_program::most_pushes);
  expect_on_device(net);
}

}  // namespace
}  // namespace tosaic::test
