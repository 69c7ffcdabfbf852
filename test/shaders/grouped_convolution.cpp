// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels are one dispatch, with what finishes them.
#include "cpu/channel_groups.h"
#include "shaders/computed.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

using vulkan_program::TierId;

// Widths of groups by fours and not, more channels out than in and fewer, and whatever windows do.
const ChannelGroups shapes[] = {
    {1, 9, 10, 6, 8, 8},
    {2, 7, 7, 3, 4, 12, {3, 3}, {1, 1, 1, 1}, {2, 2}},
    {1, 5, 6, 2, 24, 24},
    {2, 5, 7, 3, 18, 20, {3, 3}, {1, 0, 0, 1}, {1, 2}},
    {1, 9, 10, 2, 48, 64, {3, 3}, {2, 2, 2, 2}, {1, 1}, {2, 2}},
    {1, 6, 7, 5, 16, 16, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {1, 6, 13, 2, 32, 32, {3, 3}, {0, 1, 0, 1}, {2, 2}},
    {1, 8, 9, 3, 16, 4, {1, 1}, {0, 0, 0, 0}},
    {1, 1, 40, 5, 8, 4, {1, 5}, {0, 0, 2, 2}, {1, 2}},  // of one dim
    {1, 11, 12, 2, 8, 8, {7, 7}, {3, 3, 3, 3}, {1, 1}, {1, 1}},
    {1, 12, 11, 4, 4, 8, {3, 3}, {2, 2, 3, 3}, {1, 2}, {2, 3}},
    {2, 5, 4, 3, 5, 3, {3, 2}, {1, 1, 1, 0}, {1, 1}},  // no quads
    {1, 4, 5, 2, 6, 4, {2, 3}, {1, 0, 1, 1}, {2, 1}},
    {1, 3, 30, 2, 4, 4, {1, 11}, {0, 0, 5, 5}, {1, 1}},  // more columns than are written out
    {1, 2, 3, 3, 8, 8, {3, 3}, {3, 3, 3, 3}, {1, 1}},    // windows that reach nothing but the edge
};

std::vector<std::string> kernels_of(const Net& net, TierId tier) {
  std::vector<std::string> names;
  const auto program = compiled(net.graph, {&tier, 1});
  for (const auto& d : program.tiers.at(0).dispatches) names.push_back(d.kernel);
  return names;
}

void expect_one_dispatch(const Net& net) {
  for (const TierId tier : every_tier())
    EXPECT_EQ(kernels_of(net, tier), std::vector<std::string>{"grouped_conv2d"}) << row_of(tier).name;
}

TEST(GroupedConvolution, OfFloats) {
  int n = 0;
  for (const ChannelGroups& shape : shapes)
    for (const auto precision : {shaders::Precision::fp32, shaders::Precision::fp16}) {
      SCOPED_TRACE(shape.text());
      Net net(31);
      ValueId v = convolved_groups(net, shape, image_of_groups(net, shape, DType::f32));
      const Attrs clamp{{"min_val", -0.5}, {"max_val", 2.0}, {"nan_mode", std::string("propagate")}};
      switch (n++ % 4) {
        case 0: v = net.node("clamp", {v}, clamp); break;
        case 1: v = product(net, v, net.node("sigmoid", {v})); break;
        case 2:
          v = net.node("clamp", {net.node("add", {v, net.input(DType::f32, net.graph[v].type.shape, -1, 1)})}, clamp);
          break;
        default: break;
      }
      net.output(v);
      expect_one_dispatch(net);
      const double loose = precision == shaders::Precision::fp16 ? 2e-2 : 1e-4;
      expect_of_every_tier(net, {loose, loose}, "floats", precision);
    }
}

// In half precision from one layer to the next.
TEST(GroupedConvolution, OfHalfPrecision) {
  Net net(35);
  ValueId v = net.node("tanh", {net.input(DType::f32, {1, 9, 8, 32}, -1, 1)});
  for (const ChannelGroups& shape : {ChannelGroups{1, 9, 8, 4, 8, 16}, ChannelGroups{1, 9, 8, 2, 32, 32}})
    v = net.node("tanh", {convolved_groups(net, shape, v)});
  net.output(v);
  expect_of_every_tier(net, {2e-2, 2e-2}, "half precision", shaders::Precision::fp16);
  Net stored(36);
  const ChannelGroups shape{1, 9, 8, 4, 8, 16};
  stored.output(convolved_groups(stored, shape, image_of_groups(stored, shape, DType::f16)));
  expect_of_every_tier(stored, {2e-3, 2e-2}, "f16");
}

TEST(GroupedConvolution, OfIntegers) {
  int n = 0;
  for (const ChannelGroups& shape : shapes) {
    SCOPED_TRACE(shape.text());
    Net net(32);
    const bool each = n % 3 != 2, per_channel = n % 2 == 0;
    const auto rescaled = [&](ValueId v) { return net.rescale(v, DType::i8, 38, 44, per_channel, 0, 3); };
    ValueId v = convolved_groups(net, shape, image_of_groups(net, shape, DType::i8),
                                 each ? rescaled : std::function<ValueId(ValueId)>(),
                                 n % 5 == 3 ? DType::i4 : DType::i8, n % 4 == 1 && n % 5 != 3 ? 7 : 0);
    if (!each) v = rescaled(v);
    if (n++ % 4 == 3) {  // a residual sum
      const ValueId a = net.rescale(v, DType::i32, 11, 12, false, 7),
                    b = net.rescale(net.input(DType::i8, net.graph[v].type.shape, -128, 127), DType::i32, 11, 12, false,
                                    -4);
      v = net.rescale(net.node("add", {a, b}), DType::i8, 49, 50, false, 0, 1);
    }
    net.output(v);
    expect_one_dispatch(net);
    expect_of_every_tier(net, {}, "integers");
  }
}

TEST(GroupedConvolution, OfWideSums) {
  Net net(33);
  const ChannelGroups shape{1, 4, 5, 3, 4, 8};
  net.output(convolved_groups(net, shape, image_of_groups(net, shape, DType::i16),
                              [&](ValueId v) { return net.rescale(v, DType::i16, 30, 34, true); }));
  expect_one_dispatch(net);
  expect_of_every_tier(net, {}, "i16");
}

// Wide ones are products, by matrices where the device has them.
TEST(GroupedConvolution, OfWideGroups) {
  const ChannelGroups wide{1, 6, 7, 3, 32, 48}, narrow{1, 6, 7, 3, 8, 8};
  for (const bool matrices : {true, false}) {
    const ChannelGroups& shape = matrices ? wide : narrow;
    SCOPED_TRACE(shape.text());
    Net floats(39), integers(40);
    const ValueId x = floats.node("tanh", {image_of_groups(floats, shape, DType::f32)});
    floats.output(floats.node("tanh", {convolved_groups(floats, shape, x)}));
    expect_matrices(floats, TierId::coopmat, {2e-2, 2e-2}, matrices, shaders::Precision::fp16);
    integers.output(integers.rescale(convolved_groups(integers, shape, image_of_groups(integers, shape, DType::i8)),
                                     DType::i8, 38, 44, true));
    expect_matrices(integers, TierId::coopmat_int8, {}, matrices);
  }
}

// So many pixels that invocations make several.
TEST(GroupedConvolution, OfManyPixels) {
  for (const DType type : {DType::f32, DType::i8})
    for (const std::int64_t width : {63, 128}) {
      Net net(34);
      const ChannelGroups shape{1, 130, width, 16, 4, 4};
      ValueId v = convolved_groups(net, shape, image_of_groups(net, shape, type));
      net.output(type == DType::i8 ? net.rescale(v, DType::i8, 38, 44, true) : v);
      expect_one_dispatch(net);
      if (!without_vulkan()) expect_on_device(net, {1e-4, 1e-4}, "many pixels");
    }
}

// What others see or read, and what is no whole row of groups.
TEST(GroupedConvolution, WhatIsNone) {
  const ChannelGroups shape{1, 5, 6, 3, 8, 8};
  for (int which = 0; which < 5; ++which) {
    SCOPED_TRACE(which);
    Net net(37);
    const ValueId v = convolved_groups(net, shape, image_of_groups(net, shape, DType::f32));
    net.output(v);
    auto& nodes = net.graph.nodes;  // slice, conv2d, slice, conv2d, slice, conv2d, concat
    switch (which) {
      case 0: net.output(nodes[2].outputs[0]); break;
      case 1: net.output(net.node("tanh", {nodes[3].outputs[0]})); break;
      case 2: std::swap(nodes[6].inputs[0], nodes[6].inputs[1]); break;
      case 3: nodes[3].inputs[3] = net.numbers(DType::f32, {0}), nodes[3].inputs[0] = nodes[0].outputs[0]; break;
      default: nodes[5].attrs.set("acc_type", DType::f32), nodes[5].attrs.set("local_bound", true); break;
    }
    const auto names = kernels_of(net, TierId::base);
    EXPECT_EQ(std::ranges::count(names, std::string("grouped_conv2d")), 0);
    expect_of_every_tier(net, {1e-4, 1e-4}, "none");
  }
}

// Groups of some of a tensor's channels.
TEST(GroupedConvolution, OfAPartOfTheChannels) {
  Net net(38);
  const ChannelGroups shape{1, 5, 6, 2, 8, 12};
  const ValueId x = net.input(DType::f32, {1, 5, 6, 36}, -1, 1);
  net.output(convolved_groups(net, shape, net.node("slice", {x, net.shape({0, 0, 0, 8}), net.shape({1, 5, 6, 16})})));
  ValueId first = no_value;
  for (Node& node : net.graph.nodes)
    if (node.op == tosa::op::slice && node.inputs[0] != x) {
      const auto start = *tosa::View(net.graph, node).constant_integers(1);
      first = node.inputs[0];
      node.inputs = {x, net.shape({0, 0, 0, 8 + start[3]}), node.inputs[2]};
    }
  std::erase_if(net.graph.nodes, [&](const Node& node) { return node.outputs[0] == first; });
  drop_dead(net.graph);
  const auto names = kernels_of(net, TierId::base);
  EXPECT_EQ(std::ranges::count(names, std::string("grouped_conv2d")), 1);
  EXPECT_EQ(names.size(), 2u);
  expect_of_every_tier(net, {1e-4, 1e-4}, "a part");
}

}  // namespace
}  // namespace tosaic::test
