// SPDX-License-Identifier: Apache-2.0
// A step of a recurrent layer is one dispatch, its product and what is made of the gates, and the next layer's product
// of a step's row comes with it.
#include <fmt/format.h>

#include "shaders/computed.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

using shaders::Precision;
using vulkan_program::TierId;

class GatedProduct : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
  static std::vector<std::string> kernels(const Net& net, Precision precision = Precision::fp32) {
    constexpr TierId base = TierId::base;
    const vulkan_program::Program program = compiled(net.graph, {&base, 1}, precision);
    std::vector<std::string> names;
    for (const auto& d : program.tiers.at(0).dispatches) names.push_back(d.kernel);
    return names;
  }
  static std::int64_t gated(const Net& net) { return std::ranges::count(kernels(net), "conv2d+elementwise"); }
  static ValueId gate(Net& net, const char* op, ValueId gates, std::int64_t begin, std::int64_t width) {
    const std::int64_t rows = net.graph[gates].type.shape.size(0);
    return net.node(op, {net.node("slice", {gates, net.shape({0, begin}), net.shape({rows, width})})});
  }
  // [rows, columns], of a state of [rows, depth].
  static ValueId linear(Net& net, ValueId x, std::int64_t columns) {
    const Shape& shape = net.graph[x].type.shape;
    const ValueId weight = net.constant(DType::f32, {columns, 1, 1, shape.size(1)}, -0.3, 0.3);
    return shaped(net, net.conv2d(shaped(net, x, {1, 1, shape.size(0), shape.size(1)}), weight),
                  {shape.size(0), columns});
  }
  // One layer's states; `projected`: [steps, 4 * width], of which each step takes a row.
  static std::vector<ValueId> layer(Net& net, ValueId projected, std::int64_t width) {
    const std::int64_t steps = net.graph[projected].type.shape.size(0);
    ValueId state = net.input(DType::f32, {1, width}, -1, 1), sum = net.input(DType::f32, {1, width}, -1, 1);
    std::vector<ValueId> states;
    for (std::int64_t t = 0; t < steps; ++t) {
      const ValueId row = net.node("slice", {projected, net.shape({t, 0}), net.shape({1, 4 * width})});
      const ValueId gates = net.node("add", {row, linear(net, state, 4 * width)});
      const ValueId kept = product(net, gate(net, "sigmoid", gates, width, width), sum);
      sum = net.node("add", {kept, product(net, gate(net, "sigmoid", gates, 0, width),
                                           gate(net, "tanh", gates, 2 * width, width))});
      state = product(net, gate(net, "sigmoid", gates, 3 * width, width), net.node("tanh", {sum}));
      states.push_back(state);
    }
    return states;
  }
  static ValueId joined(Net& net, const std::vector<ValueId>& rows) {
    return net.node("concat", rows, {{"axis", std::int64_t{0}}});
  }
};

TEST_F(GatedProduct, OfOneStep) {
  for (const std::int64_t rows : {1, 2, 4})
    for (const std::int64_t width : {4, 20, 64}) {
      Net net(7);
      const ValueId x = net.input(DType::f32, {rows, 70}, -1, 1), gates = linear(net, x, 3 * width);
      net.output(product(net, gate(net, "sigmoid", gates, width, width), gate(net, "tanh", gates, 2 * width, width)));
      const std::string what = fmt::format("{} rows, {} wide", rows, width);
      EXPECT_EQ(kernels(net), std::vector<std::string>{"conv2d+elementwise"}) << what;
      expect_of_every_tier(net, {2e-5, 2e-5}, what);
    }
}

// Somebody else reads a part, the sums go out, gates are no whole quads or too many, or they cross rows.
TEST_F(GatedProduct, WhereItCannotBe) {
  const auto with = [](const char* what, std::int64_t width, const auto& more) {
    Net net(5);
    const ValueId gates = linear(net, net.input(DType::f32, {2, 64}, -1, 1), 10 * width);
    net.output(product(net, gate(net, "sigmoid", gates, 0, width), gate(net, "tanh", gates, width, width)));
    more(net, gates);
    EXPECT_EQ(gated(net), 0) << what;
    expect_of_every_tier(net, {2e-5, 2e-5}, what);
  };
  with("another reader", 16, [](Net& net, ValueId gates) {
    net.output(net.node("reduce_sum", {gates}, {{"axis", std::int64_t{1}}}));
  });
  with("an output", 16, [](Net& net, ValueId gates) { net.output(gates); });
  with("no quads", 6, [](Net&, ValueId) {});
}

TEST_F(GatedProduct, OfTooManyGates) {
  Net net(5);
  const ValueId gates = linear(net, net.input(DType::f32, {1, 64}, -1, 1), 9 * 8);
  ValueId all = gate(net, "abs", gates, 0, 8);
  for (std::int64_t i = 1; i < 9; ++i) all = net.node("add", {all, gate(net, "abs", gates, 8 * i, 8)});
  net.output(all);
  EXPECT_EQ(gated(net), 0);
  expect_of_every_tier(net, {2e-5, 2e-5}, "nine gates");
}

// The first layer's steps, the second one's and its rows: none waits for a whole layer.
TEST_F(GatedProduct, OfTwoLayers) {
  constexpr std::int64_t steps = 5, width = 64;
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    Net net(3);
    const ValueId given = linear(net, net.input(DType::f32, {steps, 32}, -1, 1), 4 * width),
                  first = joined(net, layer(net, given, width));
    const std::vector<ValueId> second = layer(net, linear(net, first, 4 * width), width);
    net.output(second.back());
    if (precision == Precision::fp32) {
      EXPECT_EQ(gated(net), 2 * steps);
      EXPECT_EQ(std::ranges::count(kernels(net), "conv2d"), steps + 1);
      EXPECT_EQ(std::ssize(kernels(net)), 3 * steps + 1);
    }
    const double loose = precision == Precision::fp16 ? 5e-3 : 2e-5;
    expect_of_every_tier(net, {loose, loose}, "two layers", precision);
  }
}

// In half precision states that are joined in the result have its 32 bits, and are no copies; but not where a product
// of many rows reads them, which is faster by 16.
TEST_F(GatedProduct, OfJoinedResults) {
  for (const std::int64_t rows : {1, 8}) {
    Net net(3);
    std::vector<ValueId> parts;
    ValueId sum = net.input(DType::f32, {rows, 64}, -1, 1);
    for (int i = 0; i < 3; ++i) parts.push_back(sum = net.node("tanh", {linear(net, sum, 64)}));
    net.output(shaped(net, joined(net, parts), {1, 3 * rows, 64}));
    const std::vector<std::string> names = kernels(net, Precision::fp16);
    EXPECT_EQ(std::ranges::count(names, "move"), rows == 1 ? 0 : 3) << rows;
    expect_of_every_tier(net, {2e-3, 2e-3}, "joined", Precision::fp16);
  }
}

// Rows that are there at once are one product, and so are those that are read together.
TEST_F(GatedProduct, OfRowsThatAreTogether) {
  for (const bool at_once : {true, false}) {
    Net net(3);
    std::vector<ValueId> rows;
    for (int i = 0; i < 6; ++i)
      rows.push_back(net.node("tanh", {at_once || i == 0 ? net.input(DType::f32, {1, 64}, -1, 1) : rows.back()}));
    const ValueId made = linear(net, joined(net, rows), 32);
    for (std::int64_t i = 0; i < 6; ++i)
      net.output(net.node("exp", {net.node("slice", {made, net.shape({i, 0}), net.shape({1, 32})})}));
    if (!at_once) net.output(net.node("reduce_sum", {made}, {{"axis", std::int64_t{0}}}));
    EXPECT_EQ(std::ranges::count(kernels(net), "conv2d"), 1) << at_once;
    expect_of_every_tier(net, {2e-5, 2e-5}, "together");
  }
}

// Of integers: the interpreter's bits, with a table for each gate.
TEST_F(GatedProduct, OfIntegers) {
  constexpr std::int64_t width = 16;
  Net net(9);
  const ValueId x = net.input(DType::i8, {1, 1, 1, 64}, -128, 127),
                weight = net.constant(DType::i8, {4 * width, 1, 1, 64}, -127, 127),
                bias = net.constant(DType::i32, {4 * width}, -1000, 1000);
  const ValueId zero = net.numbers(DType::i8, {3}), none = net.numbers(DType::i8, {0});
  const ValueId sums = net.node("conv2d", {x, weight, bias, zero, none},
                                {{"pad", Sizes{0, 0, 0, 0}},
                                 {"stride", Sizes{1, 1}},
                                 {"dilation", Sizes{1, 1}},
                                 {"acc_type", DType::i32},
                                 {"local_bound", false}},
                                DType::i32);
  const ValueId gates = shaped(net, narrow(net, sums, 34), {1, 4 * width});
  const auto table = [&](std::int64_t begin) {
    const ValueId part = net.node("slice", {gates, net.shape({0, begin}), net.shape({1, width})});
    return wide(net, looked_up(net, part));
  };
  ValueId all = table(0);
  for (std::int64_t i = 1; i < 4; ++i)
    all = narrow(net, product(net, wide(net, all), table(i * width)), 44, DType::i32);
  net.output(all);
  EXPECT_EQ(gated(net), 1);
  expect_of_every_tier(net, {}, "integers");
}

}  // namespace
}  // namespace tosaic::test
