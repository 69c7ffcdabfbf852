// SPDX-License-Identifier: Apache-2.0
// Weights that are cut in pieces: what is computed stays the same, and what fits stays whole.
#include <gtest/gtest.h>
#include <algorithm>

#include "interp/interp.h"
#include "ir/aten_operators.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "normalise/split_weights.h"

namespace tosaic::test {
namespace {

constexpr std::uint64_t rows = 600, columns = 300;

// A table, and a linear layer that has it as its weights.
Graph tied(bool biased) {
  auto graph = parse(std::string("graph @main(%i: 2x3xi32, %b: 600xf32) -> (%y) {\n") +
                     "  %w: 600x300xf32 = aten.zeros.default() {size=[600, 300]}\n" +
                     "  %x: 2x3x300xf32 = aten.embedding.default(%w, %i)\n" +
                     "  %y: 2x3x600xf32 = aten.linear.default(%x, %w" + (biased ? ", %b" : "") + ")\n}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  std::vector<float> numbers(rows * columns), bias(rows);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k * 7919 % 1013) / 1013 - 0.5f;
  for (std::size_t k = 0; k < bias.size(); ++k) bias[k] = static_cast<float>(k);
  for (Value& v : graph->values) {
    if (v.name == "w") v.constant = Bytes::of(numbers);
    if (v.name == "b" && biased) v.constant = Bytes::of(bias);
  }
  graph->inputs.resize(1);
  graph->nodes.erase(graph->nodes.begin());
  if (!biased) drop_dead(*graph);
  return *std::move(graph);
}

Graph at_most(std::uint64_t bytes, bool biased) {
  auto normal = normalise(tied(biased), {}, {});
  EXPECT_TRUE(normal.ok()) << (normal.ok() ? "" : normal.error().message);
  EXPECT_TRUE(split_weights(*normal, bytes).ok());
  EXPECT_TRUE(verify(*normal).ok());
  return *std::move(normal);
}

Bytes result(const Graph& graph) {
  const auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().message);
  Tensor places{{DType::i32, Shape{2, 3}, {}}, Bytes::of(std::vector<std::int32_t>{0, 599, 17, 300, 255, 256})};
  auto made = interp::run(lowered->graph, {places});
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made->at(0).data;
}

std::ptrdiff_t count(const Graph& graph, Operator op) { return std::ranges::count(graph.nodes, op, &Node::op); }

TEST(SplitWeights, compute_what_whole_ones_do) {
  constexpr std::uint64_t row = columns * 4;
  for (const bool biased : {false, true}) {
    const Graph whole = at_most(rows * row, biased);
    EXPECT_EQ(count(whole, aten::op::cat), 0);
    const auto expected = result(whole);
    for (const std::uint64_t bytes : {rows * row - 1, 256 * row, 130 * row, 128 * rows * 4}) {
      const Graph pieces = at_most(bytes, biased);
      EXPECT_EQ(count(pieces, aten::op::cat), 2) << bytes;
      for (const Value& v : pieces.values) EXPECT_LE(v.constant.size(), bytes) << v.name;
      EXPECT_TRUE(result(pieces) == expected) << bytes;
    }
  }
}

// Nothing to be done here: the device refuses it.
TEST(SplitWeights, rows_that_fit_nowhere_stay) {
  const Graph graph = at_most(columns * 4 - 1, false);
  EXPECT_EQ(count(graph, aten::op::cat), 0);
}

}  // namespace
}  // namespace tosaic::test
