// SPDX-License-Identifier: Apache-2.0
#include "plan/groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "ops/definitions/tosa_op.h"
#include "plan/expression.h"
#include "plan/memory.h"

namespace tosaic::plan {
namespace {

using Nodes = std::vector<std::uint32_t>;

Graph graph_of(std::string_view text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  return graph.ok() ? *graph : Graph();
}

Fusing all_elementwise(const Graph& graph, std::size_t max_nodes = 12) {
  return {[&graph](std::uint32_t n) {
            const tosa::Op* op = tosa::find(graph.nodes[n].op);
            return op && op->elementwise;
          },
          max_nodes};
}

// 0: a product; 1, 2, 3: after it; 4: serves 3 only; 5: reads 3 and what the product read.
constexpr std::string_view tail = R"(graph @g(%x: 1x4x4xf32, %w: 1x4x4xf32, %s: 1x1x4xf32) -> (%f) {
  %z: 1xf32 = constant [0]
  %a: 1x4x4xf32 = tosa.matmul(%x, %w, %z, %z)
  %b: 1x4x4xf32 = tosa.add(%a, %s)
  %c: 1x4x4xf32 = tosa.tanh(%b)
  %e: 1x4x4xf32 = tosa.exp(%x)
  %d: 1x4x4xf32 = tosa.sub(%c, %e)
  %f: 1x4x4xf32 = tosa.maximum(%d, %x) {nan_mode="propagate"}
})";

TEST(Groups, ATailTakesWhatServesOnlyIt) {
  const Graph graph = graph_of(tail);
  const Uses uses(graph);
  Nodes taken;
  EXPECT_TRUE(longest_epilogue(uses, all_elementwise(graph), graph.nodes[0].outputs[0],
                               [&](const Nodes& nodes) { return taken = nodes, true; }));
  EXPECT_EQ(taken, (Nodes{1, 2, 3, 4, 5}));
}

TEST(Groups, ShorterTailsAreOfferedUntilOneIsTaken) {
  const Graph graph = graph_of(tail);
  std::vector<Nodes> offered;
  EXPECT_FALSE(longest_epilogue(Uses(graph), all_elementwise(graph), graph.nodes[0].outputs[0],
                                [&](const Nodes& nodes) { return offered.push_back(nodes), false; }));
  EXPECT_EQ(offered, (std::vector<Nodes>{{1, 2, 3, 4, 5}, {1, 2, 3, 4}, {1, 2}, {1}}));
}

// What is left out because a group is full would read the product, which is computed nowhere else.
TEST(Groups, ATailThatIsCutShortIsNoTail) {
  const Graph graph = graph_of(R"(graph @g(%x: 1x4x4xf32, %w: 1x4x4xf32) -> (%g) {
  %z: 1xf32 = constant [0]
  %a: 1x4x4xf32 = tosa.matmul(%x, %w, %z, %z)
  %b: 1x4x4xf32 = tosa.tanh(%a)
  %c: 1x4x4xf32 = tosa.exp(%b)
  %d: 1x4x4xf32 = tosa.abs(%a)
  %e: 1x4x4xf32 = tosa.exp(%d)
  %f: 1x4x4xf32 = tosa.add(%c, %e)
  %g: 1x4x4xf32 = tosa.abs(%f)
})");
  for (std::size_t most = 1; most <= 7; ++most) {
    Fusing fusing = all_elementwise(graph, most);
    fusing.joins = true;
    longest_epilogue(Uses(graph), fusing, graph.nodes[0].outputs[0], [&](const Nodes& nodes) {
      for (std::uint32_t reader : {1u, 3u}) EXPECT_TRUE(std::ranges::find(nodes, reader) != nodes.end()) << most;
      return false;
    });
  }
}

TEST(Groups, WhatOthersSeeEndsAGroup) {
  const Graph graph = graph_of(tail);
  const ValueId tanh = graph.nodes[2].outputs[0];
  const Uses uses(graph, std::span(&tanh, 1));
  EXPECT_EQ(elementwise_group(uses, all_elementwise(graph), 5), (Nodes{3, 4, 5}));
  EXPECT_EQ(elementwise_group(uses, all_elementwise(graph, 2), 5).size(), 2u);
}

// Node 1 reads what 0 makes; so does who stands behind both.
TEST(Groups, ResultsThatLaterNodesReadAreShared) {
  const auto shared = [](const std::string& body, std::uint32_t last, std::size_t most = 12) {
    const Graph graph = graph_of("graph @g(%x: 1x4x4xf32, %s: 1x1x4xf32) -> (%q) {\n" + body + "}");
    const Uses uses(graph);
    const Fusing fusing = all_elementwise(graph, most);
    return with_shared_results(uses, fusing, elementwise_group(uses, fusing, last), [](const Nodes&) { return true; });
  };
  const std::string two = "  %a: 1x4x4xf32 = tosa.add(%x, %s)\n  %b: 1x4x4xf32 = tosa.tanh(%a)\n",
                    end = "  %p: 1x4x4xf32 = tosa.add(%a, %s)\n  %q: 1x4x4xf32 = tosa.add(%b, %p)\n";
  EXPECT_EQ(shared(two + end, 1), (Nodes{0, 1}));
  // 3 reads what stands before it, and 2 as well.
  EXPECT_EQ(shared(two + end, 3), (Nodes{0, 1, 2, 3}));
  EXPECT_EQ(shared(two + end, 1, 1), (Nodes{1}));
  // With what then serves only the two; of which none are left where they are too many.
  const std::string three =
      "  %e: 1x4x4xf32 = tosa.exp(%x)\n  %a: 1x4x4xf32 = tosa.add(%x, %e)\n"
      "  %b: 1x4x4xf32 = tosa.tanh(%a)\n";
  EXPECT_EQ(shared(three + end, 2), (Nodes{0, 1, 2}));
  EXPECT_EQ(shared(three + end, 2, 2), (Nodes{2}));
  // A reader between; a view of which another node, or the last one, reads before that is done.
  const std::string sum = "  %r: 1x4x1xf32 = tosa.reduce_sum(%a) {axis=2}\n",
                    view = "  %k: 3xshape = constant [1, 4, 4]\n  %v: 1x4x4xf32 = tosa.reshape(%a, %k)\n";
  const std::string first = "  %a: 1x4x4xf32 = tosa.add(%x, %s)\n", next = "  %b: 1x4x4xf32 = tosa.tanh(%a)\n";
  EXPECT_EQ(shared(first + sum + next + "  %q: 1x4x4xf32 = tosa.add(%b, %r)\n", 2), (Nodes{2}));
  EXPECT_EQ(shared(first + view + next + "  %q: 1x4x4xf32 = tosa.add(%b, %v)\n", 2), (Nodes{0, 2}));
  EXPECT_EQ(shared(first + view + next + "  %q: 1x4x4xf32 = tosa.add(%b, %v)\n", 3), (Nodes{2, 3}));
  // Of fewer elements.
  EXPECT_EQ(shared("  %a: 1x1x4xf32 = tosa.exp(%s)\n  %b: 1x4x4xf32 = tosa.add(%x, %a)\n" + end, 1), (Nodes{1}));
}

TEST(Expressions, OperandsAreRepeatedByStride) {
  const Graph graph = graph_of(R"(graph @g(%x: 2x3x4xf32, %r: 1x3x1xf32, %q: 2x1x4xf32) -> (%z) {
    %y: 2x3x4xf32 = tosa.add(%r, %x)
    %z: 2x3x4xf32 = tosa.pow(%y, %q)
  })");
  const Expression e = expression_of(graph, {0, 1});
  ASSERT_EQ(e.inputs.size(), 3u);
  EXPECT_EQ(e.inputs[0].strides, (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(e.inputs[1].strides, (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(e.inputs[2].strides, (std::vector<std::int64_t>{4, 0, 1}));
  EXPECT_EQ(e.calls[0].operands, (std::vector<int>{0, 1}));
  EXPECT_EQ(e.calls[1].operands, (std::vector<int>{~0, 2}));
  EXPECT_EQ(e.output, graph.outputs[0]);
}

// A constant of the operator is no operand to walk over.
TEST(Expressions, ShiftsAndTablesAreTheOperatorsOwn) {
  EXPECT_EQ(walked_operands(*tosa::find("mul")), 2u);
  EXPECT_EQ(walked_operands(*tosa::find("table")), 1u);
  EXPECT_EQ(walked_operands(*tosa::find("rescale")), 1u);
  EXPECT_EQ(walked_operands(*tosa::find("select")), 3u);
}

TEST(Memory, EveryValueHasItsHome) {
  const Graph graph = graph_of(R"(graph @g(%x: 4xf32) -> (%d, %v) {
    %k: 4xf32 = constant [1, 2, 3, 4]
    %a: 4xf32 = tosa.add(%x, %k)
    %b: 4xf32 = tosa.exp(%a)
    %v: 2x2xf32 = tosa.identity(%b)
    %c: 4xf32 = tosa.exp(%b)
    %d: 4xf32 = tosa.exp(%c)
  })");
  const ValueId x = graph.inputs[0], a = graph.nodes[0].outputs[0], b = graph.nodes[1].outputs[0],
                v = graph.nodes[2].outputs[0], c = graph.nodes[3].outputs[0], d = graph.nodes[4].outputs[0];
  std::vector<StepMemory> steps;
  for (const Node& node : graph.nodes) steps.push_back({node.inputs, node.outputs, 0});
  const std::vector<Alias> aliases{{v, b, 0}};
  const Memory memory = place_values(graph, aliases, steps, 64);
  EXPECT_EQ(memory.location[x].home, Home::input);
  EXPECT_EQ(memory.location[d].home, Home::output);
  EXPECT_EQ(memory.location[v].root, b);
  EXPECT_EQ(memory.location[v].home, Home::output);  // b is computed where its view goes
  EXPECT_EQ(memory.location[b].slot, 1u);
  EXPECT_EQ(memory.location[a].home, Home::arena);
  EXPECT_EQ(memory.location[c].home, Home::arena);
  EXPECT_EQ(memory.location[a].arena_offset, memory.location[c].arena_offset);  // never alive together
  EXPECT_EQ(memory.arena_bytes, 64u);
  EXPECT_TRUE(memory.copies.empty());
}

}  // namespace
}  // namespace tosaic::plan
