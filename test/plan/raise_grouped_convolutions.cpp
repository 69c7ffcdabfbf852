// SPDX-License-Identifier: Apache-2.0
#include "plan/raise_grouped_convolutions.h"

#include <gtest/gtest.h>

#include "ops/definitions/extension.h"
#include "plan/raised.h"

namespace tosaic::plan {
namespace {

// What the graph becomes; nullopt: it stays.
std::optional<Graph> raised(const std::string& text, const std::vector<std::string>& observed = {}, bool takes = true) {
  Graph graph = parsed(text);
  if (!raise_grouped_convolutions(
          graph, [&](const Graph&, const Node&) { return takes; }, values_called(observed, graph)))
    return std::nullopt;
  drop_dead(graph);  // values that nothing makes any more
  const Status verified = verify(graph);
  EXPECT_TRUE(verified.ok()) << print(graph);
  for (const Node& node : graph.nodes)
    EXPECT_TRUE(!extension::find(node.op) || !extension::verify_node(tosa::View(graph, node))) << print(graph);
  const auto in_tosa = extension::in_tosa(graph);
  EXPECT_TRUE(in_tosa && tosa::verify_graph(*in_tosa, tosa::Spec::everything()).ok());
  return graph;
}
std::string operators_of(const std::optional<Graph>& graph) { return graph ? plan::operators_of(*graph) : ""; }

const std::string floats = R"(graph @g(%x: 1x2x2x4xf32) -> (%y) {
  %none: 1xf32 = constant [0]
  %first: 4xshape = constant [0, 0, 0, 0]
  %second: 4xshape = constant [0, 0, 0, 2]
  %size: 4xshape = constant [1, 2, 2, 2]
  %w0: 1x1x1x2xf32 = constant [1, 2]
  %w1: 1x1x1x2xf32 = constant [3, 4]
  %b0: 1xf32 = constant [5]
  %b1: 1xf32 = constant [6]
  %s0: 1x2x2x2xf32 = tosa.slice(%x, %first, %size)
  %c0: 1x2x2x1xf32 = tosa.conv2d(%s0, %w0, %b0, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=f32, local_bound=false}
  %s1: 1x2x2x2xf32 = tosa.slice(%x, %second, %size)
  %c1: 1x2x2x1xf32 = tosa.conv2d(%s1, %w1, %b1, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=f32, local_bound=false}
  %y: 1x2x2x2xf32 = tosa.concat(%c0, %c1) {axis=3}
})";

TEST(RaiseGroupedConvolutions, JoinsWeightsAndBiases) {
  const auto graph = raised(floats);
  ASSERT_EQ(operators_of(graph), "tosaic.grouped_conv2d");
  const tosa::View view(*graph, graph->nodes[0]);
  EXPECT_EQ(extension::grouped_conv2d::groups(view), 2);
  const auto weights = view.constant(1).as<float>(), biases = view.constant(2).as<float>();
  EXPECT_EQ(std::vector(weights.begin(), weights.end()), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(std::vector(biases.begin(), biases.end()), (std::vector<float>{5, 6}));
}

TEST(RaiseGroupedConvolutions, OfAPartOfATensor) {
  const auto graph =
      raised(replaced(replaced(replaced(floats, "%x: 1x2x2x4", "%x: 1x2x2x9"), "[0, 0, 0, 0]\n", "[0, 0, 0, 3]\n"),
                      "[0, 0, 0, 2]", "[0, 0, 0, 5]"));
  ASSERT_EQ(operators_of(graph), "tosa.slice tosaic.grouped_conv2d");
  const tosa::View slice(*graph, graph->nodes[0]);
  EXPECT_EQ(slice.constant_integers(1), (std::vector<std::int64_t>{0, 0, 0, 3}));
  EXPECT_EQ(slice.constant_integers(2), (std::vector<std::int64_t>{1, 2, 2, 4}));
}

// Slices of images with channels first, each of which is turned.
TEST(RaiseGroupedConvolutions, TurnedAfterTheSlices) {
  std::string text = replaced(floats, "%x: 1x2x2x4", "%x: 1x4x2x2");
  text = replaced(text, "[0, 0, 0, 2]", "[0, 2, 0, 0]");
  for (const std::string g : {"0", "1"}) {
    text = replaced(text, "conv2d(%s" + g, "conv2d(%t" + g);
    text = replaced(text, "  %c" + g,
                    "  %t" + g + ": 1x2x2x2xf32 = tosa.transpose(%s" + g + ") {perms=[0, 2, 3, 1]}\n  %c" + g);
  }
  auto graph = raised(text);
  ASSERT_EQ(operators_of(graph), "tosa.transpose tosaic.grouped_conv2d");
  EXPECT_EQ((*graph)[graph->nodes[0].inputs[0]].name, "x");
  graph = raised(replaced(text, "%x: 1x4x2x2", "%x: 1x5x2x2"));
  ASSERT_EQ(operators_of(graph), "tosa.slice tosa.transpose tosaic.grouped_conv2d");
  EXPECT_EQ(operators_of(raised(replaced(text, "[0, 2, 0, 0]", "[0, 0, 0, 0]"))), "");
  EXPECT_EQ(operators_of(raised(replaced(text, "perms=[0, 2, 3, 1]", "perms=[0, 3, 2, 1]"))), "");
  EXPECT_EQ(operators_of(raised(text, {"t1"})), "");
}

TEST(RaiseGroupedConvolutions, WhatIsNone) {
  EXPECT_EQ(operators_of(raised(replaced(floats, "concat(%c0, %c1)", "concat(%c1, %c0)"))), "");
  EXPECT_EQ(operators_of(raised(replaced(floats, "[0, 0, 0, 2]", "[0, 0, 0, 1]"))), "");
  const std::string wide =
      replaced(floats, "2xf32 = tosa.concat(%c0, %c1) {axis=3}", "1xf32 = tosa.concat(%c0, %c1) {axis=2}");
  EXPECT_EQ(operators_of(raised(replaced(wide, "%y: 1x2x2x1", "%y: 1x2x4x1"))), "");
  const std::string other =
      replaced(floats, "%s1, %w1, %b1, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1]",
               "%s1, %w1, %b1, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 2]");
  EXPECT_EQ(operators_of(raised(other)), "");
}

TEST(RaiseGroupedConvolutions, WhatIsSeenStays) {
  for (const char* seen : {"s0", "c1"}) {
    EXPECT_EQ(operators_of(raised(floats, {seen})), "");
    EXPECT_EQ(operators_of(raised(replaced(floats, "-> (%y)", std::string("-> (%y, %") + seen + ")"))), "");
  }
  EXPECT_EQ(operators_of(raised(floats, {"x", "y"})), "tosaic.grouped_conv2d");
  EXPECT_EQ(operators_of(raised(floats, {}, false)), "");
  EXPECT_EQ(operators_of(raised(replaced(floats, "(%s1, %w1", "(%s0, %w1"))), "");
}

const std::string clamp = "{min_val=0.0, max_val=6.0, nan_mode=\"propagate\"}";

TEST(RaiseGroupedConvolutions, FinishedAfterwards) {
  std::string text = replaced(floats, "concat(%c0, %c1)", "concat(%d0, %d1)");
  text = replaced(
      text, "  %y:",
      "  %d0: 1x2x2x1xf32 = tosa.clamp(%c0) " + clamp + "\n  %d1: 1x2x2x1xf32 = tosa.clamp(%c1) " + clamp + "\n  %y:");
  EXPECT_EQ(operators_of(raised(text)), "tosaic.grouped_conv2d tosa.clamp");
  EXPECT_EQ(operators_of(raised(replaced(text, "max_val=6.0", "max_val=5.0"))), "");
  EXPECT_EQ(operators_of(raised(
                replaced(text, "%d1: 1x2x2x1xf32 = tosa.clamp(%c1) " + clamp, "%d1: 1x2x2x1xf32 = tosa.tanh(%c1)"))),
            "");
}

const std::string integers = R"(graph @g(%x: 1x2x2x4xi8) -> (%y) {
  %none: 1xi8 = constant [0]
  %zero: 1xi32 = constant [0]
  %first: 4xshape = constant [0, 0, 0, 0]
  %second: 4xshape = constant [0, 0, 0, 2]
  %size: 4xshape = constant [1, 2, 2, 2]
  %w0: 2x1x1x2xi8 = constant [1, 2, 3, 4]
  %w1: 2x1x1x2xi8 = constant [5, 6, 7, 8]
  %b: 2xi32 = constant [9, 10]
  %m0: 1xi32 = constant [1073741824]
  %m1: 1xi32 = constant [1073741825]
  %shift: 1xi8 = constant [32]
  %s0: 1x2x2x2xi8 = tosa.slice(%x, %first, %size)
  %c0: 1x2x2x2xi32 = tosa.conv2d(%s0, %w0, %b, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
  %r0: 1x2x2x2xi8 = tosa.rescale(%c0, %m0, %shift, %zero, %none) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
  %s1: 1x2x2x2xi8 = tosa.slice(%x, %second, %size)
  %c1: 1x2x2x2xi32 = tosa.conv2d(%s1, %w1, %b, %none, %none) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
  %r1: 1x2x2x2xi8 = tosa.rescale(%c1, %m1, %shift, %zero, %none) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
  %y: 1x2x2x4xi8 = tosa.concat(%r0, %r1) {axis=3}
})";

TEST(RaiseGroupedConvolutions, ScalesOfChannels) {
  auto graph = raised(integers);
  ASSERT_EQ(operators_of(graph), "tosaic.grouped_conv2d tosa.rescale");
  const tosa::View rescale(*graph, graph->nodes[1]);
  EXPECT_TRUE(rescale.flag("per_channel"));
  EXPECT_EQ(rescale.constant_integers(1), (std::vector<std::int64_t>{1073741824, 1073741824, 1073741825, 1073741825}));
  EXPECT_EQ(rescale.constant_integers(2), (std::vector<std::int64_t>{32, 32, 32, 32}));
  graph =
      raised(replaced(integers, "%r1: 1x2x2x2xi8 = tosa.rescale(%c1, %m1", "%r1: 1x2x2x2xi8 = tosa.rescale(%c1, %m0"));
  ASSERT_EQ(operators_of(graph), "tosaic.grouped_conv2d tosa.rescale");
  EXPECT_FALSE(tosa::View(*graph, graph->nodes[1]).flag("per_channel"));
}

}  // namespace
}  // namespace tosaic::plan
