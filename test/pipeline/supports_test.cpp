// SPDX-License-Identifier: Apache-2.0
// Verdicts per exported node: what each became, through folding, expansion and recognition, and whether a target takes
// it, asked without samples.
#include <gtest/gtest.h>

#include "ir/provenance.h"
#include "partition/graph_text.h"
#include "pipeline/supports.h"

namespace tosaic {
namespace {

SupportQuestion about(const char* spec, bool integer, Scheme scheme = Scheme::int8) {
  return {*tosa::Spec::parse(spec), integer, {.scheme = scheme}};
}

// "name:pieces" with the reason's code behind what stays outside.
std::string told(Supports& supports, const SupportQuestion& question) {
  auto verdicts = supports.about(question);
  EXPECT_TRUE(verdicts.ok()) << (verdicts.ok() ? "" : render(verdicts.error(), false));
  std::string out;
  if (!verdicts.ok()) return out;
  for (const Verdict& v : *verdicts)
    out += fmt::format("{}{}:{}{}", out.empty() ? "" : " ", v.node.name, v.pieces, v.taken ? "" : " " + v.reason.code);
  return out;
}

const char* const net = R"(graph @main(%x: 1x2x4x4xf32) -> (%soft, %odd) {
  %w: 2x2x1x1xf32 = constant [1.0, 2.0, 3.0, 4.0]
  %conv: 1x2x4x4xf32 = aten.conv2d.default(%x, %w, none) loc("m.py":1 in "c" "Conv2d" from "aten.conv2d.default" as "conv")
  %one: 2xf32 = constant [1.0, 1.0]
  %norm: 1x2x4x4xf32 = aten.batch_norm.default(%conv, %one, %one, %one, %one) {training=false, momentum=0.1, eps=1e-05, cudnn_enabled=true} loc("m.py":2 in "n" "BatchNorm2d" from "aten.batch_norm.default" as "norm")
  %drop: 1x2x4x4xf32 = aten.dropout.default(%norm) {p=0.5, train=false} loc("m.py":3 from "aten.dropout.default" as "drop")
  %soft: 1x2x4x4xf32 = aten.softmax.int(%drop) {dim=1} loc("m.py":4 from "aten.softmax.int" as "soft")
  %odd: 1x2x4x4xf32 = mine.odd.default(%drop) loc("m.py":5 from "mine.odd.default" as "odd")
})";

TEST(Supports, one_verdict_per_exported_node) {
  Supports supports(graph_of(net));
  EXPECT_EQ(told(supports, about("TOSA-1.0+FP", false)), "conv:1 norm:1 drop:0 soft:1 odd:1 aten.unknown-operator");
  // In integers a softmax is several calls, and what is unknown stays float.
  const std::string integers = told(supports, about("TOSA-1.0+INT+int16", true));
  EXPECT_EQ(integers, "conv:1 norm:1 drop:0 soft:6 odd:1 aten.unknown-operator");
  EXPECT_EQ(told(supports, about("TOSA-1.0+INT+int16", true)), integers);  // asked again
}

TEST(Supports, schemes_and_profiles_differ) {
  Supports supports(graph_of(R"(graph @main(%x: 2x3xf32) -> (%y) {
  %y: 2x3xf32 = aten.relu.default(%x) loc("m.py":1 from "aten.relu.default" as "relu")
})"));
  EXPECT_EQ(told(supports, about("TOSA-1.0+INT", true)), "relu:1");
  EXPECT_EQ(told(supports, about("TOSA-1.0+INT", true, Scheme::int16x8)), "relu:1 target.unsupported");
  EXPECT_EQ(told(supports, about("TOSA-1.0+INT+int16", true, Scheme::int16x8)), "relu:1");
  EXPECT_EQ(told(supports, about("TOSA-1.0+INT", false)), "relu:1 target.unsupported");  // floats, not quantised
}

TEST(Supports, what_is_left_of_nothing_is_taken) {
  Supports supports(graph_of(R"(graph @main(%x: 2x3xf32) -> (%y) {
  %c: 2x3xf32 = aten.full.default() {size=[2, 3], fill_value=2.0} loc("m.py":1 from "aten.full.default" as "full")
  %y: 2x3xf32 = aten.mul.Tensor(%x, %c) loc("m.py":2 from "aten.mul.Tensor" as "mul")
})"));
  EXPECT_EQ(told(supports, about("TOSA-1.0+FP", false)), "full:0 mul:1");
}

TEST(Supports, errors_are_those_of_normalise) {
  Supports supports(graph_of(R"(graph @main(%x: 2xf32) -> (%y) {
  %y: 2xf32 = aten.relu.default(%x, %x)
})"));
  auto verdicts = supports.about(about("TOSA-1.0+FP", false));
  ASSERT_FALSE(verdicts.ok());
  EXPECT_EQ(verdicts.error().code, "model.inconsistent");
}

TEST(Provenance, is_printed_and_read) {
  Graph graph = graph_of(net);
  graph.nodes[0].loc = joined(graph.nodes[0].loc, graph.nodes[1].loc);
  EXPECT_EQ(exported_names(*graph.nodes[0].loc), (std::vector<std::string_view>{"conv", "norm"}));
  const std::string text = print(graph, ConstantText::all, true);
  EXPECT_EQ(print(graph_of(text), ConstantText::all, true), text);
  const Graph read = graph_of(text);
  EXPECT_EQ(exported_names(*read.nodes[0].loc).size(), 2u);
}

TEST(Provenance, a_comma_is_part_of_a_name) {
  auto a = std::make_shared<Loc>();
  a->name = "left,right";
  auto b = std::make_shared<Loc>();
  b->name = "right";
  const LocRef both = joined(a, b);
  EXPECT_EQ(exported_names(*both), (std::vector<std::string_view>{"left,right", "right"}));
  EXPECT_EQ(located(Diagnostic{}, both).context, "nodes left,right, right");
  EXPECT_EQ(joined(both, b)->also.size(), 1u);
}

}  // namespace
}  // namespace tosaic
