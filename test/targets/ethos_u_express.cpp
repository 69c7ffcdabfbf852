// SPDX-License-Identifier: Apache-2.0
// What a device has no command for becomes what it has, with every result kept.
#include "targets/ethos_u/express.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <map>

#include "interp/interp.h"
#include "targets/ethos_u/products.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<double> numbers(std::int64_t n, int low, int high) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = low + static_cast<double>((i * 7919 + i * i * 31 + 13) % static_cast<std::size_t>(high - low + 1));
  return values;
}

OneNode convolution(const std::string& op, DType type, Shape x, Shape weight, Ints stride, Ints pad,
                    Ints dilation = {}) {
  const bool depthwise = op == "depthwise_conv2d", transposed = op == "transpose_conv2d";
  const std::int64_t channels = depthwise ? weight.size(2) * weight.size(3) : weight.size(0);
  const DType sums = type == DType::i8 ? DType::i32 : DType::i48;
  std::vector<std::pair<std::string, Attr>> attrs{
      {transposed ? "out_pad" : "pad", pad}, {"stride", stride}, {"acc_type", sums}, {"local_bound", false}};
  if (!transposed) attrs.emplace_back("dilation", dilation.empty() ? Ints(stride.size(), 1) : dilation);
  OneNode node{op,
               {in(type, x), constant(DType::i8, weight, numbers(weight.elements(), -127, 127)),
                constant(sums, {channels}, numbers(channels, -900, 900)),
                constant(type, {1}, {type == DType::i8 ? 5.0 : 0.0}), constant(DType::i8, {1}, {0})},
               {}};
  for (auto& [name, value] : attrs) node.attrs.set(name, value);
  return node;
}

OneNode pool(const std::string& op, DType type, Shape x, Ints kernel, Ints stride, Ints pad) {
  OneNode node{op, {in(type, x)}, {{"kernel", kernel}, {"stride", stride}, {"pad", pad}}};
  if (op == "max_pool2d") {
    node.attrs.set("nan_mode", std::string("propagate"));
  } else {
    node.attrs.set("acc_type", DType::i32);
    const double zero = type == DType::i8 ? 3 : 0;
    node.operands.insert(node.operands.end(), {constant(type, {1}, {zero}), constant(type, {1}, {-zero})});
  }
  return node;
}

// Sums of 48 bits can only be rescaled: nothing else of TOSA takes them.
void rescale_wide_sums(Graph& graph, bool per_channel) {
  const ValueId sums = graph.outputs[0];
  if (graph[sums].type.dtype != DType::i48) return;
  const auto number = [&](DType type, std::int64_t value) {
    return graph.add_value("c", {type, Shape{1}, {}}, constant_bytes(type, Ints{value}));
  };
  const Shape& shape = graph[sums].type.shape;
  const std::int64_t channels = per_channel ? shape.size(shape.rank() - 1) : 1;
  Ints factors, shifts;
  for (std::int64_t c = 0; c < channels; ++c) {
    factors.push_back((1 << 14) + 1000 * c);
    shifts.push_back(21 + c % 2);
  }
  const auto list = [&](DType type, const Ints& values) {
    return graph.add_value("c", {type, Shape{channels}, {}}, constant_bytes(type, values));
  };
  Node node;
  node.op = tosa::op::rescale;
  node.inputs = {sums, list(DType::i16, factors), list(DType::i8, shifts), number(DType::i48, 0),
                 number(DType::i16, 0)};
  node.attrs = {{"scale32", false},
                {"rounding_mode", std::string("single_round")},
                {"per_channel", per_channel},
                {"input_unsigned", false},
                {"output_unsigned", false}};
  node.outputs = {graph.add_value("codes", {DType::i16, graph[sums].type.shape, {}})};
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
}

void expect_expressed(const OneNode& node, ethos_u::NativeCheck native = ethos_u::native_u55,
                      bool per_channel = false) {
  Graph graph = node.graph();
  rescale_wide_sums(graph, per_channel);
  ASSERT_TRUE(native(tosa::View(graph, graph.nodes[0]))) << "native already: " << print(graph);
  EXPECT_FALSE(ethos_u::expressible(tosa::View(graph, graph.nodes[0]), native)) << print(graph);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    const auto range = range_of(graph[v].type.dtype);
    inputs.push_back(
        {graph[v].type,
         constant_bytes(graph[v].type.dtype, numbers(graph[v].type.shape.elements(),
                                                     static_cast<int>(std::max<std::int64_t>(range.lowest, -3000)),
                                                     static_cast<int>(std::min<std::int64_t>(range.highest, 3000))))});
  }
  const auto before = interp::run(graph, inputs);
  ASSERT_TRUE(before.ok()) << render(before.error(), false);
  ethos_u::express(graph, native);
  make_names_unique(graph);
  const auto sound = tosa::verify_graph(graph, *tosa::Spec::parse("TOSA-1.0+INT+int16"));
  ASSERT_TRUE(sound.ok()) << render(sound.error(), false);
  for (const Node& n : graph.nodes) EXPECT_FALSE(native(tosa::View(graph, n))) << print(graph);
  const auto after = interp::run(graph, inputs);
  ASSERT_TRUE(after.ok()) << render(after.error(), false);
  EXPECT_EQ((*before)[0].type, (*after)[0].type);
  EXPECT_EQ((*before)[0].data, (*after)[0].data) << print(graph);
}

TEST(Express, convolutions_in_three_dims) {
  for (const DType type : {DType::i8, DType::i16}) {
    expect_expressed(convolution("conv3d", type, {1, 5, 6, 7, 2}, {3, 3, 2, 3, 2}, {1, 1, 1}, {1, 1, 0, 1, 1, 1}));
    expect_expressed(convolution("conv3d", type, {2, 7, 5, 5, 2}, {3, 3, 3, 3, 2}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}));
    expect_expressed(
        convolution("conv3d", type, {1, 9, 7, 5, 1}, {2, 3, 2, 1, 1}, {2, 1, 1}, {2, 0, 0, 1, 0, 0}, {2, 2, 1}));
    expect_expressed(convolution("conv3d", type, {1, 4, 3, 3, 2}, {2, 1, 1, 1, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}));
    expect_expressed(convolution("conv3d", type, {1, 9, 9, 9, 1}, {2, 3, 3, 3, 1}, {3, 5, 4}, {0, 0, 1, 2, 1, 3}));
  }
}

TEST(Express, long_strides_of_convolutions) {
  for (const auto native : {ethos_u::native_u55, ethos_u::native_u85}) {
    expect_expressed(convolution("conv2d", DType::i8, {2, 1, 41, 3}, {4, 1, 9, 3}, {1, 4}, {0, 0, 4, 4}), native);
    expect_expressed(convolution("conv2d", DType::i16, {1, 33, 32, 2}, {4, 3, 3, 2}, {5, 4}, {1, 2, 0, 3}), native);
    expect_expressed(convolution("conv2d", DType::i8, {1, 23, 20, 2}, {3, 3, 2, 2}, {6, 2}, {2, 2, 0, 0}, {2, 3}),
                     native);
    expect_expressed(convolution("conv2d", DType::i8, {1, 20, 20, 1}, {3, 1, 1, 1}, {7, 7}, {0, 2, 2, 0}), native);
  }
  expect_expressed(convolution("depthwise_conv2d", DType::i8, {1, 33, 32, 3}, {3, 4, 3, 1}, {4, 4}, {0, 2, 1, 3}));
  expect_expressed(convolution("depthwise_conv2d", DType::i16, {2, 1, 40, 3}, {1, 5, 3, 2}, {1, 5}, {0, 0, 0, 0}));
}

TEST(Express, tall_kernels) {
  expect_expressed(convolution("conv2d", DType::i8, {1, 80, 5, 2}, {3, 65, 2, 2}, {1, 1}, {0, 0, 0, 0}));
  expect_expressed(convolution("conv2d", DType::i16, {1, 90, 70, 1}, {2, 70, 69, 1}, {2, 1}, {3, 4, 1, 1}));
  expect_expressed(convolution("conv2d", DType::i8, {1, 80, 4, 2}, {3, 24, 1, 2}, {1, 2}, {5, 5, 0, 1}, {3, 1}));
  expect_expressed(convolution("depthwise_conv2d", DType::i8, {1, 90, 4, 3}, {80, 1, 3, 2}, {1, 1}, {1, 0, 0, 0}));
}

TEST(Express, strides_of_transposed_convolutions) {
  expect_expressed(convolution("transpose_conv2d", DType::i8, {1, 4, 5, 3}, {2, 3, 3, 3}, {3, 3}, {0, 0, 0, 0}));
  expect_expressed(convolution("transpose_conv2d", DType::i8, {2, 4, 5, 3}, {2, 5, 4, 3}, {4, 3}, {-1, -2, -1, 0}));
  expect_expressed(convolution("transpose_conv2d", DType::i8, {1, 3, 4, 2}, {2, 2, 3, 2}, {3, 1}, {0, 1, 0, 0}));
}

TEST(Express, transposed_convolutions_in_16_bits) {
  for (const bool per_channel : {false, true}) {
    for (const std::int64_t stride : {1, 2, 3})
      for (const Ints& pad : {Ints{0, 0, 0, 0}, Ints{-1, -1, -2, 0}})
        expect_expressed(convolution("transpose_conv2d", DType::i16, {2, 4, 5, 3}, {2, 3, 4, 3}, {stride, stride}, pad),
                         ethos_u::native_u55, per_channel);
  }
}

TEST(Express, sums_of_48_bits_are_not_cut) {  // here nobody rescales them
  const Graph graph =
      convolution("transpose_conv2d", DType::i16, {1, 4, 5, 3}, {2, 3, 3, 3}, {2, 2}, {0, 0, 0, 0}).graph();
  EXPECT_TRUE(ethos_u::expressible(tosa::View(graph, graph.nodes[0]), ethos_u::native_u55));
}

TEST(Express, multipliers_of_few_channels_are_dense) {
  for (const DType type : {DType::i8, DType::i16})
    for (const auto& [weight, dense] : {std::pair{Shape{3, 2, 3, 2}, true}, std::pair{Shape{3, 2, 3, 1}, false},
                                        std::pair{Shape{3, 2, 1, 4}, false}, std::pair{Shape{3, 2, 5, 2}, false}}) {
      Graph graph =
          convolution("depthwise_conv2d", type, {1, 4, 5, weight.size(2)}, weight, {2, 1}, {1, 1, 0, 1}).graph();
      const TensorType input = graph[graph.inputs[0]].type;
      const std::vector<Tensor> inputs{{input, constant_bytes(type, numbers(input.shape.elements(), -128, 127))}};
      const auto before = interp::run(graph, inputs);
      ASSERT_TRUE(before.ok()) << render(before.error(), false);
      ethos_u::multipliers_as_dense(graph, 4);
      EXPECT_EQ(graph.nodes[0].op, dense ? tosa::op::conv2d : tosa::op::depthwise_conv2d);
      const auto after = interp::run(graph, inputs);
      ASSERT_TRUE(after.ok()) << render(after.error(), false);
      EXPECT_EQ((*before)[0].data, (*after)[0].data) << print(graph);
    }
}

// Native transposed convolutions: as plain ones where nothing has to be cut, elsewhere only if asked to.
TEST(Express, transposed_convolutions_that_are_cheaper_as_plain_ones) {
  struct Case {
    Shape weight;
    Ints stride, pad;
    bool uncut;
  };
  for (const Case& c :
       {Case{{2, 2, 2, 3}, {2, 2}, {0, 0, 0, 0}, true}, Case{{2, 4, 2, 3}, {2, 2}, {0, 0, 0, 0}, true},
        Case{{2, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, true}, Case{{2, 3, 4, 3}, {1, 1}, {-1, -2, -2, 0}, true},
        Case{{2, 6, 6, 3}, {2, 2}, {-2, -2, -4, -2}, true}, Case{{2, 3, 3, 3}, {2, 2}, {0, 0, 0, 0}, false},
        Case{{2, 4, 4, 3}, {2, 2}, {-1, -1, -1, -1}, false}})
    for (const bool cuts_too : {false, true}) {
      Graph graph = convolution("transpose_conv2d", DType::i8, {2, 4, 5, 3}, c.weight, c.stride, c.pad).graph();
      const TensorType input = graph[graph.inputs[0]].type;
      const std::vector<Tensor> inputs{{input, constant_bytes(DType::i8, numbers(120, -128, 127))}};
      const auto before = interp::run(graph, inputs);
      ASSERT_TRUE(before.ok()) << render(before.error(), false);
      ethos_u::transposed_as_convolutions(graph, cuts_too);
      const bool plain = std::none_of(graph.nodes.begin(), graph.nodes.end(),
                                      [](const Node& n) { return n.op == tosa::op::transpose_conv2d; });
      EXPECT_EQ(plain, c.uncut || cuts_too) << print(graph);
      const auto after = interp::run(graph, inputs);
      ASSERT_TRUE(after.ok()) << render(after.error(), false);
      EXPECT_EQ((*before)[0].type, (*after)[0].type);
      EXPECT_EQ((*before)[0].data, (*after)[0].data) << print(graph);
    }
}

TEST(Express, pools) {
  for (const DType type : {DType::i8, DType::i16}) {
    expect_expressed(pool("max_pool2d", type, {2, 15, 20, 3}, {5, 4}, {5, 4}, {0, 0, 0, 0}));
    expect_expressed(pool("max_pool2d", type, {1, 33, 31, 2}, {9, 7}, {4, 6}, {4, 4, 3, 3}));
    expect_expressed(pool("avg_pool2d", type, {1, 20, 22, 2}, {10, 9}, {5, 2}, {5, 5, 4, 3}));
    expect_expressed(pool("avg_pool2d", type, {1, 16, 16, 2}, {3, 3}, {5, 5}, {1, 1, 1, 1}));
  }
  expect_expressed(pool("avg_pool2d", DType::i8, {1, 257, 3, 2}, {257, 3}, {1, 1}, {0, 0, 0, 0}));
  expect_expressed(pool("avg_pool2d", DType::i8, {2, 300, 4, 2}, {300, 2}, {300, 2}, {0, 0, 0, 0}));
  expect_expressed(pool("avg_pool2d", DType::i8, {1, 257, 3, 2}, {257, 3}, {1, 1}, {0, 0, 0, 0}), ethos_u::native_u85);
}

TEST(Express, choices_that_are_known) {
  const auto select = [](DType type, Shape condition, Shape a, Shape b) {
    return OneNode{"select",
                   {constant(DType::boolean, condition, numbers(condition.elements(), 0, 1)), in(type, a), in(type, b)},
                   {}};
  };
  for (const DType type : {DType::i8, DType::i16}) {
    expect_expressed(select(type, {1, 1, 5, 7}, {2, 3, 5, 7}, {2, 3, 5, 1}));
    expect_expressed(select(type, {4}, {4}, {1}));
  }
}

TEST(Express, long_axes) {
  const auto sum = [](Shape x, std::int64_t axis) {
    return OneNode{"reduce_sum", {in(DType::i32, x)}, {{"axis", axis}}};
  };
  expect_expressed(sum({1, 70000}, 1));
  expect_expressed(sum({2, 65537, 2}, 1));  // a prime: the last group is filled up
  expect_expressed(sum({2, 3, 131072}, 0));
  const auto turn = [](Shape x, Ints perms) { return OneNode{"transpose", {in(DType::i8, x)}, {{"perms", perms}}}; };
  expect_expressed(turn({1, 70000, 3}, {0, 2, 1}));
  expect_expressed(turn({1, 2, 65537}, {2, 0, 1}));
}

TEST(Express, resizing) {
  const auto resize = [](double n, double d, double offset, double border, std::string mode) {
    return OneNode{"resize",
                   {in(DType::i8, {2, 3, 4, 2}), dims({n, d, n, d}), dims({offset, offset}), dims({border, border})},
                   {{"mode", std::move(mode)}}};
  };
  expect_expressed(resize(6, 2, -2, 2, "nearest"));
  expect_expressed(resize(8, 2, -3, 3, "nearest"));
  expect_expressed(resize(2, 1, -1, 0, "nearest"));
  expect_expressed(resize(4, 2, -1, 1, "bilinear"));  // twice, pixels' centres
  expect_expressed(resize(8, 2, -3, 3, "bilinear"));  // four times
  expect_expressed(resize(3, 1, 0, 0, "bilinear"));   // corners on corners
  expect_expressed(resize(2, 4, 1, -1, "bilinear"));  // half
  expect_expressed(resize(6, 4, -1, 1, "bilinear"));  // three for two
}

TEST(Express, a_rescale_goes_before_the_views_behind_its_convolution) {
  OneNode node = convolution("conv3d", DType::i8, {1, 3, 4, 5, 1}, {2, 2, 2, 2, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0});
  Graph graph = node.graph();
  const ValueId sums = graph.outputs[0];
  const auto number = [&](DType type, Ints values) {
    return graph.add_value("c", {type, Shape{static_cast<std::int64_t>(values.size())}, {}},
                           constant_bytes(type, values));
  };
  Node rescale;
  rescale.op = tosa::op::rescale;
  rescale.inputs = {sums, number(DType::i32, {1 << 30, 1 << 29}), number(DType::i8, {37, 37}), number(DType::i32, {0}),
                    number(DType::i8, {0})};
  rescale.attrs = {{"scale32", true},
                   {"rounding_mode", std::string("single_round")},
                   {"per_channel", true},
                   {"input_unsigned", false},
                   {"output_unsigned", false}};
  rescale.outputs = {graph.add_value("codes", {DType::i8, graph[sums].type.shape, {}})};
  graph.outputs = rescale.outputs;
  graph.nodes.push_back(std::move(rescale));
  const std::vector<Tensor> inputs{{graph[graph.inputs[0]].type, constant_bytes(DType::i8, numbers(60, -128, 127))}};
  const auto before = interp::run(graph, inputs);
  ethos_u::express(graph, ethos_u::native_u55);
  make_names_unique(graph);
  const auto after = interp::run(graph, inputs);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*before)[0].data, (*after)[0].data);
  for (std::size_t n = 1; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].op == tosa::op::rescale) { EXPECT_EQ(graph.nodes[n - 1].op, tosa::op::conv2d) << print(graph); }
}

}  // namespace
}  // namespace tosaic
