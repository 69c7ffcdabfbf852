// SPDX-License-Identifier: Apache-2.0
// Calls whose last bit decides something are lowered as the nearest float, and only these.
#include <gtest/gtest.h>
#include <algorithm>

#include "normalise/normalise.h"
#include "ops/domain.h"
#include "ops/op.h"

namespace tosaic::test {
namespace {

// Is the call that gives %q marked?
bool is_exact(const std::string& body, const std::string& output = "y") {
  auto graph = parse("graph @main(%x: 4x4xf32, %d: 4x4xf32, %w: 4x4xf32) -> (%" + output + ") {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  auto normal = normalise(std::move(*graph), {}, {});
  EXPECT_TRUE(normal.ok()) << (normal.ok() ? "" : normal.error().message);
  for (const Node& node : normal->nodes)
    if ((*normal)[node.outputs[0]].name == "q") return node.attrs.find("exact") != nullptr;
  ADD_FAILURE() << "no call gives %q";
  return false;
}

const std::string quotient = "  %q: 4x4xf32 = aten.div.Tensor(%x, %d)\n";

TEST(SeenRounding, shows) {
  EXPECT_TRUE(is_exact(quotient + "  %y: 4x4xf32 = aten.floor.default(%q)"));
  EXPECT_TRUE(is_exact(quotient + "  %y: 4x4xf32 = aten.round.default(%q)"));
  EXPECT_TRUE(is_exact(quotient + "  %y: 4x4xf32 = aten.sign.default(%q)"));
  EXPECT_TRUE(is_exact(quotient + "  %y: 4x4xi32 = aten._to_copy.default(%q) {dtype=i32}"));
  EXPECT_TRUE(is_exact(quotient + "  %y: 4x4xbool = aten.lt.Tensor(%q, %w)"));
  EXPECT_TRUE(is_exact("  %q: 4x4xf32 = aten.sqrt.default(%x)\n  %y: 4x4xf32 = aten.ceil.default(%q)"));
  EXPECT_TRUE(is_exact("  %q: 4x4xf32 = aten.log2.default(%x)\n  %y: 4x4xf32 = aten.trunc.default(%q)"));
  EXPECT_TRUE(is_exact("  %q: 4xf32 = aten.mean.dim(%x) {dim=[1]}\n  %y: 4xf32 = aten.floor.default(%q)"));
}

TEST(SeenRounding, shows_through_elementwise_operators) {
  EXPECT_TRUE(is_exact(quotient + "  %a: 4x4xf32 = aten.add.Tensor(%q, %w)\n"
                                  "  %b: 4x4xf32 = aten.t.default(%a)\n"
                                  "  %c: 4x4xf32 = aten.relu.default(%b)\n"
                                  "  %y: 4x4xf32 = aten.floor.default(%c)"));
  EXPECT_TRUE(is_exact(quotient + "  %a: 4x4xf32 = aten.div.Tensor(%q, %w)\n"
                                  "  %y: 4x4xf32 = aten.floor.default(%a)"));
}

TEST(SeenRounding, shows_behind_sums_and_extremes) {
  for (const char* reduce : {"sum.dim_IntList", "amax.default", "amin.default", "mean.dim"})
    EXPECT_TRUE(is_exact(quotient + "  %a: 4xf32 = aten." + reduce + "(%q) {dim=[1]}\n" +
                         "  %y: 4xf32 = aten.floor.default(%a)"))
        << reduce;
  EXPECT_TRUE(is_exact(quotient + "  %a: 4x4xf32 = aten.cumsum.default(%q) {dim=1}\n"
                                  "  %y: 4x4xbool = aten.ge.Tensor(%a, %w)"));
}

TEST(SeenRounding, is_hidden) {
  EXPECT_FALSE(is_exact(quotient, "q"));
  EXPECT_FALSE(is_exact(quotient + "  %y: 4x4xf32 = aten.add.Tensor(%q, %w)"));
  EXPECT_FALSE(is_exact(quotient + "  %y: 4x4xf32 = aten.gelu.default(%q)"));
  EXPECT_FALSE(is_exact(quotient + "  %y: 4x4xf32 = aten.atan.default(%q)"));
  // by a product of matrices, or a sum of exponentials
  EXPECT_FALSE(is_exact(quotient + "  %a: 4x4xf32 = aten.mm.default(%q, %w)\n"
                                   "  %y: 4x4xf32 = aten.floor.default(%a)"));
  EXPECT_FALSE(is_exact(quotient + "  %a: 4x4xf32 = aten.softmax.int(%q) {dim=1}\n"
                                   "  %y: 4xi32 = aten.argmax.default(%a) {dim=1}"));
}

}  // namespace
}  // namespace tosaic::test
