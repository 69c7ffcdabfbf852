// SPDX-License-Identifier: Apache-2.0
// Weights and quantised tables, on each tier: as quantised values where they have scales by group, as numbers where
// they are something else.
#include "shaders/heads.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

class WeightQuantisation : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

struct QuantisedCase {
  std::int64_t rows, depth, group;
  double least = -8, most = 7;
  bool scaled = true;
};

// [rows][depth] of quantised values times scales; of a scale that is no number of the group's, but of all, if group is
// 0.
ValueId weight(Net& net, const QuantisedCase& c) {
  const std::int64_t groups = c.group ? c.depth / c.group : 1, of_one = c.group ? c.group : c.depth;
  const ValueId quantised = net.constant(DType::i8, {c.rows, groups, of_one}, c.least, c.most);
  const ValueId cast = net.node("cast", {quantised}, {}, DType::f32);
  if (!c.scaled) return shaped(net, cast, {c.rows, c.depth});
  const ValueId scales = net.constant(DType::f32, {c.group ? c.rows : 1, groups, 1}, 0.01, 0.1);
  return shaped(net, product(net, cast, scales), {c.rows, c.depth});
}

ValueId linear(Net& net, ValueId x, ValueId w) {
  const Shape &in = net.graph[x].type.shape, &by = net.graph[w].type.shape;
  const std::int64_t rows = in.elements() / by.size(1);
  const ValueId four = shaped(net, x, {1, 1, rows, by.size(1)}),
                kernel = shaped(net, w, {by.size(0), 1, 1, by.size(1)});
  const ValueId none = net.zero(DType::f32);
  const ValueId v = net.node("conv2d", {four, kernel, net.constant(DType::f32, {by.size(0)}, -1, 1), none, none},
                             steps({0, 0, 0, 0}, {1, 1}, DType::f32));
  return shaped(net, v, {rows, by.size(0)});
}

std::uint64_t constants(const Net& net) { return compiled(net.graph, every_tier()).constants.size(); }

TEST_F(WeightQuantisation, Products) {
  const QuantisedCase cases[] = {{33, 64, 32},
                                 {128, 256, 64},
                                 {40, 96, 48},
                                 {20, 120, 120, -128, 127},
                                 {17, 60, 12, -128, 127},
                                 {64, 75, 75},
                                 {32, 64, 0},
                                 {36, 96, 96, -127, 127, false}};
  for (const QuantisedCase& c : cases)
    for (const std::int64_t rows : {1, 7, 21}) {
      SCOPED_TRACE(std::to_string(rows) + " rows by " + std::to_string(c.rows) + " of " + std::to_string(c.depth));
      Net net(3);
      net.output(net.node("tanh", {linear(net, net.input(DType::f32, {rows, c.depth}, -1, 1), weight(net, c))}));
      EXPECT_EQ(compiled(net.graph, every_tier()).tiers.at(0).dispatches.size(), 1u);
      expect_on_device(net, {2e-5, 2e-5});
    }
}

// As MATMUL has them, whose scales stand after the product.
TEST_F(WeightQuantisation, ByColumns) {
  for (const std::int64_t rows : {2, 30}) {
    Net net(6);
    const ValueId quantised = net.node("cast", {net.constant(DType::i8, {1, 128, 50}, -128, 127)}, {}, DType::f32);
    const ValueId none = net.zero(DType::f32);
    const ValueId v = net.node("matmul", {net.input(DType::f32, {1, rows, 128}, -1, 1), quantised, none, none});
    net.output(product(net, v, net.constant(DType::f32, {1, 1, 50}, 0.001, 0.01)));
    EXPECT_LT(constants(net), 52u * 128 + 4096);
    expect_on_device(net, {2e-5, 2e-5});
  }
}

// Twice in a program, as rows and as a layer's weight: once in the payload.
TEST_F(WeightQuantisation, TablesThatAreWeights) {
  Net net(4);
  const ValueId w = weight(net, {300, 128, 32}), which = net.input(DType::i32, {1, 9}, 0, 299);
  const ValueId rows = net.node("gather", {shaped(net, w, {1, 300, 128}), which});
  net.output(rows);
  net.output(linear(net, rows, w));
  EXPECT_LT(constants(net), 300u * 128 / 2 + 300 * 4 * 4 + 4096);
  expect_on_device(net, {1e-5, 1e-5});
}

// Weights that others see as well, that are no whole numbers, or that have no scale for a group: numbers.
TEST_F(WeightQuantisation, Others) {
  for (int which = 0; which < 4; ++which) {
    Net net(5);
    const ValueId x = net.input(DType::f32, {3, 128}, -1, 1);
    ValueId w = weight(net, {64, 128, 32});
    if (which == 0) net.output(net.node("add", {w, net.input(DType::f32, {1, 128}, -1, 1)}));
    if (which == 1) w = product(net, w, net.constant(DType::f32, {64, 128}, 0.5, 2));
    if (which == 2) w = product(net, w, net.constant(DType::f32, {1, 128}, 0.5, 2));
    if (which == 3) w = net.node("tanh", {w});
    net.output(linear(net, x, w));
    SCOPED_TRACE(which);
    EXPECT_GE(constants(net), 64u * 128 * 4);
    expect_on_device(net, {1e-5, 1e-5});
  }
}

}  // namespace
}  // namespace tosaic::test
