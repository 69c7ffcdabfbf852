// SPDX-License-Identifier: Apache-2.0
#include "plan/raise_definitions.h"

#include <gtest/gtest.h>

#include "ops/definitions/extension.h"
#include "plan/raised.h"

namespace tosaic::plan {
namespace {

bool any(const Graph&, const Node&) { return true; }

// The operators of what the graph becomes.
std::string raised(const std::string& text, const std::vector<std::string>& observed = {},
                   const std::function<bool(const Graph&, const Node&)>& takes = any) {
  Graph graph = parsed(text);
  const bool changed = raise_definitions(graph, takes, values_called(observed, graph));
  drop_dead(graph);  // values that nothing makes any more
  const Status verified = verify(graph);
  EXPECT_TRUE(verified.ok()) << print(graph);
  const std::string operators = operators_of(graph);
  EXPECT_EQ(changed, operators.find("tosaic.") != std::string::npos);
  return operators;
}

const std::string softmax = R"(graph @g(%x: 2x3x8xf32) -> (%y) {
  %shift: 1xi8 = constant [0]
  %m: 2x3x1xf32 = tosa.reduce_max(%x) {axis=2, nan_mode="propagate"}
  %d: 2x3x8xf32 = tosa.sub(%x, %m)
  %e: 2x3x8xf32 = tosa.exp(%d)
  %s: 2x3x1xf32 = tosa.reduce_sum(%e) {axis=2}
  %r: 2x3x1xf32 = tosa.reciprocal(%s)
  %y: 2x3x8xf32 = tosa.mul(%e, %r, %shift)
})";

TEST(RaiseDefinitions, Softmax) {
  EXPECT_EQ(raised(softmax), "tosaic.softmax");
  EXPECT_EQ(raised(replaced(softmax, "tosa.mul(%e, %r,", "tosa.mul(%r, %e,")), "tosaic.softmax");
}

TEST(RaiseDefinitions, WhatIsNoSoftmax) {
  const std::string nodes = "tosa.reduce_max tosa.sub tosa.exp tosa.reduce_sum tosa.reciprocal tosa.mul";
  EXPECT_EQ(raised(replaced(softmax, "tosa.sub(%x, %m)", "tosa.sub(%m, %x)")), nodes);
  EXPECT_EQ(raised(replaced(softmax, "tosa.mul(%e, %r,", "tosa.mul(%d, %r,")), nodes);
  EXPECT_EQ(raised(replaced(softmax, "\"propagate\"", "\"ignore\"")), nodes);
  std::string other =
      replaced(softmax, "%s: 2x3x1xf32 = tosa.reduce_sum(%e) {axis=2}", "%s: 2x1x8xf32 = tosa.reduce_sum(%e) {axis=1}");
  EXPECT_EQ(raised(replaced(other, "%r: 2x3x1xf32", "%r: 2x1x8xf32")), nodes);
}

TEST(RaiseDefinitions, WhatIsSeenStays) {
  const std::string nodes = "tosa.reduce_max tosa.sub tosa.exp tosa.reduce_sum tosa.reciprocal tosa.mul";
  EXPECT_EQ(raised(replaced(softmax, "-> (%y)", "-> (%y, %e)")), nodes);
  EXPECT_EQ(raised(softmax, {"s"}), nodes);
  EXPECT_EQ(raised(softmax, {"x", "y"}), "tosaic.softmax");
  EXPECT_EQ(raised(softmax, {}, [](const Graph&, const Node&) { return false; }), nodes);
}

const std::string masked = R"(graph @g(%x: 2x3x8xf32, %mask: 1x3x8xbool) -> (%y) {
  %shift: 1xi8 = constant [0]
  %zero: 1x1x1xf32 = constant [0]
  %l: 2x3x1xf32 = tosa.reduce_min(%x) {axis=2, nan_mode="propagate"}
  %v: 2x3x8xf32 = tosa.select(%mask, %x, %l)
  %m: 2x3x1xf32 = tosa.reduce_max(%v) {axis=2, nan_mode="propagate"}
  %d: 2x3x8xf32 = tosa.sub(%v, %m)
  %p: 2x3x8xf32 = tosa.exp(%d)
  %e: 2x3x8xf32 = tosa.select(%mask, %p, %zero)
  %s: 2x3x1xf32 = tosa.reduce_sum(%e) {axis=2}
  %r: 2x3x1xf32 = tosa.reciprocal(%s)
  %y: 2x3x8xf32 = tosa.mul(%e, %r, %shift)
})";

TEST(RaiseDefinitions, MaskedSoftmaxWhateverTheMaskBroadcastsAlong) {
  EXPECT_EQ(raised(masked), "tosaic.softmax");
  EXPECT_EQ(raised(replaced(masked, "1x3x8xbool", "2x1x8xbool")), "tosaic.softmax");
  const std::string safe = replaced(masked, "tosa.reciprocal(%s)", "tosa.reciprocal(%c)");
  EXPECT_EQ(
      raised(replaced(
          safe, "  %r:", "  %c: 2x3x1xf32 = tosa.clamp(%s) {min_val=1.0, max_val=inf, nan_mode=\"propagate\"}\n  %r:")),
      "tosaic.softmax");
}

TEST(RaiseDefinitions, TwoMasksAreNoMask) {
  const std::string two = replaced(masked, "%mask: 1x3x8xbool", "%mask: 1x3x8xbool, %other: 1x3x8xbool");
  EXPECT_EQ(raised(replaced(two, "tosa.select(%mask, %x", "tosa.select(%other, %x")).find("tosaic."),
            std::string::npos);
  EXPECT_EQ(raised(replaced(masked, "constant [0]\n  %l", "constant [1]\n  %l")).find("tosaic."), std::string::npos);
}

// The definition of tosaic.quantise_rows, then what reads its results.
std::string quantised(const std::string& attributes, const std::string& readers = "") {
  const Graph graph = parsed(
      "graph @g(%x: 2x3x8xf32) -> (%q, %r) {\n"
      "  %q: 2x3x8xi8, %s: 2x3x1xf32, %z: 2x3x1xf32 = tosaic.quantise_rows(%x) {" +
      attributes + "}\n" + readers + "  %r: 2x3x1xf32 = tosa.sub(%s, %z)\n}");
  const auto in_tosa = extension::in_tosa(graph);
  EXPECT_TRUE(in_tosa.has_value());
  return print(*in_tosa, ConstantText::all);
}

TEST(RaiseDefinitions, OneWithSeveralResults) {
  const std::string ours = quantised("least_scale=1.1920928955078125e-07, keeps_dim=true"),
                    torchao = quantised("least_scale=1.1754943508222875e-38, keeps_dim=false");
  for (const std::string& text : {ours, torchao}) {
    EXPECT_EQ(raised(text), "tosaic.quantise_rows tosa.sub") << text;
    EXPECT_EQ(raised(text, {"q", "s", "z"}), "tosaic.quantise_rows tosa.sub");
    EXPECT_EQ(raised(text, {"x"}), "tosaic.quantise_rows tosa.sub");
  }
  EXPECT_EQ(raised(quantised("least_scale=0.5, keeps_dim=true")).find("tosaic."), std::string::npos);
}

// Where the node will stand, what comes before has no results yet.
TEST(RaiseDefinitions, ResultsAreReadAfterTheLastNode) {
  const std::string text = quantised("least_scale=1.1920928955078125e-07, keeps_dim=true");
  const std::size_t at = text.find(" = tosa.reciprocal(");
  ASSERT_NE(at, std::string::npos);
  const std::size_t line = text.rfind('\n', at) + 1;
  std::string early = text;
  early.insert(line, "  %early: 2x3x1xf32 = tosa.exp(%s)\n");
  EXPECT_EQ(raised(replaced(early, "-> (%q, %r)", "-> (%q, %r, %early)")).find("tosaic."), std::string::npos);
}

// The definition of tosaic.attention.
std::string attention(const std::string& inputs, const std::string& operands, const std::string& attributes) {
  const Graph graph =
      parsed("graph @g(%q: 6x4x5xf32, %k: 6x5x7xf32, %v: 6x7x3xf32" + inputs +
             ") -> (%y) {\n  %y: 6x4x3xf32 = tosaic.attention(%q, %k, %v" + operands + ") {" + attributes + "}\n}");
  const auto in_tosa = extension::in_tosa(graph);
  EXPECT_TRUE(in_tosa.has_value());
  return print(*in_tosa, ConstantText::all);
}

TEST(RaiseDefinitions, Attention) {
  const std::string scores = "scores=[2, 3, 4, 7], ", flat = "scores=[6, 4, 7], ",
                    plain = "biased=false, masked=false, safe=false", safe = "biased=false, masked=false, safe=true",
                    biased = "biased=true, masked=false, safe=true", hidden = "biased=false, masked=true, safe=true";
  for (const std::string& attributes : {scores + plain, flat + plain, flat + safe})
    EXPECT_EQ(raised(attention("", "", attributes)), "tosaic.attention");
  for (const char* shape : {"1x1x4x7", "2x1x1x7", "2x3x4x7"}) {
    EXPECT_EQ(raised(attention(", %b: " + std::string(shape) + "xf32", ", %b", scores + biased)), "tosaic.attention");
    EXPECT_EQ(raised(attention(", %m: " + std::string(shape) + "xbool", ", %m", scores + hidden)), "tosaic.attention");
  }
}

TEST(RaiseDefinitions, WithoutAKernelForAttentionItIsASoftmax) {
  const std::string text = attention("", "", "scores=[2, 3, 4, 7], biased=false, masked=false, safe=false");
  EXPECT_EQ(raised(text, {}, [](const Graph&, const Node& node) { return node.op != extension::op::attention; }),
            "tosa.matmul tosa.reshape tosaic.softmax tosa.reshape tosa.matmul");
}

const std::string layer_norm = R"(graph @g(%x: 2x4xf32, %w: 1x4xf32) -> (%y) {
  %shift: 1xi8 = constant [0]
  %quarter: 1x1xf32 = constant [0.25]
  %epsilon: 1x1xf32 = constant [0.01]
  %b: 1x4xf32 = constant [1, 2, 3, 4]
  %s: 2x1xf32 = tosa.reduce_sum(%x) {axis=1}
  %m: 2x1xf32 = tosa.mul(%s, %quarter, %shift)
  %c: 2x4xf32 = tosa.sub(%x, %m)
  %q: 2x4xf32 = tosa.mul(%c, %c, %shift)
  %t: 2x1xf32 = tosa.reduce_sum(%q) {axis=1}
  %v: 2x1xf32 = tosa.mul(%t, %quarter, %shift)
  %a: 2x1xf32 = tosa.add(%v, %epsilon)
  %r: 2x1xf32 = tosa.rsqrt(%a)
  %n: 2x4xf32 = tosa.mul(%c, %r, %shift)
  %p: 2x4xf32 = tosa.mul(%w, %n, %shift)
  %y: 2x4xf32 = tosa.add(%p, %b)
})";

TEST(RaiseDefinitions, LayerNorm) {
  EXPECT_EQ(raised(layer_norm), "tosaic.layer_norm");
  const std::string plain = replaced(layer_norm, "%p: 2x4xf32 = tosa.mul(%w, %n, %shift)\n", "");
  EXPECT_EQ(raised(replaced(plain, "tosa.add(%p, %b)", "tosa.add(%n, %b)")), "tosaic.layer_norm");
  EXPECT_EQ(raised(layer_norm, {"p"}), "tosaic.layer_norm tosa.add");
  EXPECT_EQ(raised(layer_norm, {"n"}), "tosaic.layer_norm tosa.mul tosa.add");
  EXPECT_EQ(raised(replaced(layer_norm, "-> (%y)", "-> (%y, %n)")), "tosaic.layer_norm tosa.mul tosa.add");
}

TEST(RaiseDefinitions, OfCentredRowsAloneItIsAnRmsNorm) {
  EXPECT_EQ(raised(layer_norm, {"m"}), "tosa.reduce_sum tosa.mul tosa.sub tosaic.rms_norm");
}

TEST(RaiseDefinitions, OtherNumbersAreNoNorm) {
  EXPECT_EQ(raised(replaced(layer_norm, "[0.25]", "[0.5]")).find("tosaic."), std::string::npos);
  EXPECT_EQ(
      raised(replaced(layer_norm, "%epsilon: 1x1xf32 = constant [0.01]", "%epsilon: 1x1xf32 = tosa.exp(%quarter)"))
          .find("tosaic."),
      std::string::npos);
}

}  // namespace
}  // namespace tosaic::plan
