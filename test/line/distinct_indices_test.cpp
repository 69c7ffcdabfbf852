// SPDX-License-Identifier: Apache-2.0
// Rows that are written by index: one SCATTER where no index can be named twice, and otherwise the last of them stays.
#include <gtest/gtest.h>
#include <algorithm>

#include "lower/lower.h"
#include "normalise/normalise.h"

namespace tosaic::test {
namespace {

// Are places compared with one another in what the call becomes?
bool compares(const std::string& body) {
  auto graph = parse("graph @main(%x: 8x3xf32, %p: 1xi32, %q: 4xi32, %v: 4x3xf32) -> (%y) {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  auto normal = normalise(std::move(*graph), {}, {});
  EXPECT_TRUE(normal.ok()) << (normal.ok() ? "" : normal.error().message);
  const auto lowered = lower(*normal);
  EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().message);
  const auto is = [](Operator op) { return [op](const Node& node) { return node.op == op; }; };
  EXPECT_EQ(std::ranges::count_if(lowered->graph.nodes, is(tosa::op::scatter)), 1) << body;
  return std::ranges::any_of(lowered->graph.nodes, is(tosa::op::equal));
}

const std::string arange = "  %r: 4xi32 = aten.arange.default() {end=4, dtype=i32}\n";
const std::string copied = "  %y: 8x3xf32 = aten.index_copy.default(%x, %i, %v) {dim=0}";

TEST(DistinctPlaces, are_not_compared) {
  EXPECT_FALSE(compares(arange + "  %i: 4xi32 = aten.add.Tensor(%r, %p)\n" + copied));
  EXPECT_FALSE(compares(arange + "  %i: 4xi32 = aten.sub.Tensor(%p, %r)\n" + copied));
  EXPECT_FALSE(
      compares("  %w: 1x3xf32 = aten.slice.Tensor(%v) {dim=0, start=0, end=1}\n"
               "  %y: 8x3xf32 = aten.index_copy.default(%x, %p, %w) {dim=0}"));
}

TEST(DistinctPlaces, others_are) {
  EXPECT_TRUE(compares("  %i: 4xi32 = aten.add.Tensor(%q, %p)\n" + copied));
  EXPECT_TRUE(compares(arange + "  %h: 4xi32 = aten.floor_divide.default(%r, %p)\n" +
                       "  %i: 4xi32 = aten.add.Tensor(%h, %p)\n" + copied));
}

}  // namespace
}  // namespace tosaic::test
