// SPDX-License-Identifier: Apache-2.0
// Convolutions of which one is computed behind the other in a dispatch, and images that are read where they were before
// they were moved.
#include "shaders/images.h"

#include "ir/tosa_operators.h"
#include "shaders/computed.h"

namespace tosaic::test {
namespace {

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base}, dot[] = {vulkan_program::TierId::dot};

class Images : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

std::size_t named(const Net& net, std::span<const vulkan_program::TierId> tier, std::string_view kernel) {
  const vulkan_program::Program program = compiled(net.graph, tier);
  const auto& all = program.tiers.at(0).dispatches;
  return static_cast<std::size_t>(std::ranges::count(all, kernel, &vulkan_program::Dispatch::kernel));
}

TEST_F(Images, DepthwiseBehindPlain) {
  const Sizes same{1, 1}, by_two{2, 2}, around{1, 1, 1, 1}, none{0, 0, 0, 0};
  const Block blocks[] = {
      {1, 1, 1, 4, 4, {1, 1}, none, same},  // of integers a scale for each channel, which the first one finishes
      {1, 7, 7, 20, 48, {3, 3}, around, same},
      {2, 14, 14, 8, 36, {3, 3}, around, by_two},
      {1, 30, 11, 24, 64, {3, 3}, {0, 1, 0, 1}, by_two},
      {3, 9, 17, 16, 24, {5, 5}, {2, 2, 2, 2}, same},
      {1, 33, 40, 12, 8, {3, 2}, {1, 1, 0, 1}, {1, 2}},
      {1, 5, 6, 160, 8, {3, 3}, {2, 2, 2, 2}, same},  // windows that reach nothing but the edge
  };
  for (DType type : {DType::f32, DType::i8}) {
    Net net(4);
    int n = 0;
    for (const Block& block : blocks) net.output(add_block(net, block, type, n++));
    const bool real = type == DType::f32;
    EXPECT_EQ(named(net, real ? base : dot, "conv2d+depthwise_conv2d"), std::size(blocks) - (real ? 0 : 1));
    EXPECT_EQ(named(net, real ? base : dot, "conv2d"), real ? 0u : 1u);
    expect_on_device(net, {2e-4, 2e-5});
  }
}

// Somebody else reads what the first one makes, or more is computed than two dispatches take.
TEST_F(Images, DepthwiseByItself) {
  Net net(4);
  const Block block{1, 7, 7, 8, 16, {3, 3}, {1, 1, 1, 1}, {1, 1}};
  net.output(add_block(net, block, DType::f32, 0));
  for (const Node& node : std::vector<Node>(net.graph.nodes))
    if (node.op == tosa::op::depthwise_conv2d) net.output(node.inputs[0]);
  EXPECT_EQ(named(net, base, "conv2d+depthwise_conv2d"), 0u);
  expect_on_device(net, {2e-4, 2e-5});
  Net large(4);
  large.output(add_block(large, {1, 150, 150, 4, 96, {3, 3}, {1, 1, 1, 1}, {1, 1}}, DType::f32, 0));
  EXPECT_EQ(named(large, base, "conv2d+depthwise_conv2d"), 0u);
}

ValueId transposed(Net& net, ValueId v, const Sizes& order) { return net.node("transpose", {v}, {{"perms", order}}); }

// From channels first, cut and turned; behind something elementwise, which is stored where it is read.
TEST_F(Images, ReadWhereTheyWere) {
  const Sizes last{0, 2, 3, 1};
  for (DType type : {DType::f32, DType::i8}) {
    Net net(6);
    const bool real = type == DType::f32;
    const auto convolution = [&](ValueId x, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
      const std::int64_t edge = kernel / 2;
      return plain(net, x, out, {kernel, kernel}, {edge, kernel - 1 - edge, edge, kernel - 1 - edge}, {stride, stride});
    };
    const auto made = [&](std::int64_t images, std::int64_t channels, std::int64_t high, std::int64_t wide) {
      return net.input(type, {images, channels, high, wide}, real ? -1 : -128, real ? 1 : 127);
    };
    net.output(convolution(transposed(net, made(2, 3, 9, 11), last), 12, 3, 1));
    net.output(convolution(transposed(net, made(1, 4, 8, 8), last), 17, 1, 1));
    const ValueId halved = net.node("slice", {made(2, 12, 10, 16), net.shape({0, 2, 1, 0}), net.shape({2, 9, 7, 16})});
    net.output(convolution(halved, 8, 1, 2));
    const ValueId three = net.node("slice", {made(2, 6, 5, 4), net.shape({1, 0, 0, 1}), net.shape({1, 5, 5, 3})});
    net.output(convolution(three, 5, 3, 2));
    const ValueId turned = transposed(net, made(1, 9, 7, 32), {0, 2, 1, 3});
    net.output(convolution(turned, 24, 3, 1));
    const ValueId clamped = net.node("abs", {net.input(DType::f32, {1, 3, 6, 7}, -3, 3)});
    const ValueId seen = transposed(net, clamped, last);
    net.output(real ? convolution(seen, 8, 3, 1) : seen);
    expect_on_device(net, {2e-4, 2e-5});
    EXPECT_EQ(named(net, base, "move"), 0u);
  }
}

// A movement behind something elementwise is where that is stored, unless somebody reads it before.
TEST_F(Images, StoredWhereTheyGo) {
  Net net(7);
  const ValueId x = net.input(DType::f32, {2, 5, 3, 7}, -3, 3), y = net.node("tanh", {x}), z = net.node("exp", {x});
  net.output(transposed(net, y, {3, 0, 2, 1}));
  net.output(z);
  net.output(transposed(net, z, {0, 2, 3, 1}));
  for (std::int64_t channels : {3, 4}) {  // bytes by fours, and one by one
    const ValueId quantised = net.input(DType::i8, {1, channels, 3, 5}, -128, 127);
    net.output(transposed(net, net.rescale(quantised, DType::i8, 29, 32, false, 3, -5), {0, 2, 3, 1}));
  }
  EXPECT_EQ(compiled(net.graph, base).tiers.at(0).dispatches.size(), 5u);
  expect_on_device(net, {2e-5, 2e-5});
}

// Of few channels, whose lines are read as if they were channels: of floats from where the image was as well.
TEST_F(Images, Patches) {
  for (const DType type : {DType::f32, DType::f16, DType::i8}) {
    const bool real = is_float(type);
    Net net(7);
    const ValueId planes = net.input(type, {2, 3, 12, 20}, real ? -1 : -128, real ? 1 : 127),
                  image = net.node("transpose", {planes}, {{"perms", Sizes{0, 2, 3, 1}}});
    const ValueId sums = plain(net, image, 24, {6, 4}, {0, 0, 0, 0}, {6, 4});
    net.output(real ? net.node("tanh", {sums}) : net.rescale(sums, DType::i8, 38, 44, true, 0, 3));
    // Above and below, patches may reach beyond the image.
    net.output(plain(net, image, 8, {5, 4}, {1, 2, 0, 0}, {5, 4}));
    expect_of_every_tier(net, {type == DType::f16 ? 1e-2 : 1e-4, 1e-3}, std::string(name_of(type)));
  }
}

}  // namespace
}  // namespace tosaic::test
