// SPDX-License-Identifier: Apache-2.0
// verify: one broken graph per rule.
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

Graph good() {
  auto g = parse(R"(graph @g(%x: 2xf32) -> (%y) {
    %w: 2xf32 = constant [1.0, 2.0]
    %y: 2xf32 = tosa.add(%x, %w) {k=1} loc("model.py":3 "y = x + w")
    %z: 2xf32 = tosa.cond_if(%y) ( graph @then(%p: f32) -> (%p) {} )
  })");
  EXPECT_TRUE(g.ok());
  return *g;
}
std::string code_of(const Graph& g) {
  Status s = verify(g);
  return s.ok() ? "" : s.error().code;
}

TEST(Verify, GoodGraph) { EXPECT_EQ(code_of(good()), ""); }
TEST(Verify, ValueIdOutOfRange) {
  Graph g = good();
  g.nodes[0].inputs[0] = 77;
  EXPECT_EQ(code_of(g), "ir.value-id");
  g = good();
  g.outputs[0] = no_value;
  EXPECT_EQ(code_of(g), "ir.value-id");
  g = good();
  g.inputs[0] = 77;
  EXPECT_EQ(code_of(g), "ir.value-id");
}
TEST(Verify, UseBeforeDefinition) {
  Graph g = good();
  std::swap(g.nodes[0], g.nodes[1]);
  Status s = verify(g);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, "ir.undefined-value");
}
TEST(Verify, ErrorsCarryTheNodesPlace) {
  Graph g = good();
  g.nodes[0].inputs[0] = g.nodes[1].outputs[0];
  Status s = verify(g);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().place.line, 3);
}
TEST(Verify, DefinedTwice) {
  Graph g = good();
  g.nodes[1].outputs[0] = g.nodes[0].outputs[0];
  EXPECT_EQ(code_of(g), "ir.redefined-value");
  g = good();
  g.inputs.push_back(g.inputs[0]);
  EXPECT_EQ(code_of(g), "ir.redefined-value");
}
TEST(Verify, DanglingValue) {
  Graph g = good();
  g.add_value("dangling", {});
  EXPECT_EQ(code_of(g), "ir.undefined-value");
}
TEST(Verify, DuplicateNames) {
  Graph g = good();
  g.values[1].name = g.values[0].name;
  EXPECT_EQ(code_of(g), "ir.duplicate-name");
}
TEST(Verify, ConstantSize) {
  Graph g = good();
  for (Value& v : g.values)
    if (v.is_constant()) v.constant = v.constant.slice(0, 4);
  EXPECT_EQ(code_of(g), "ir.constant-size");
}
TEST(Verify, Dimensions) {
  Graph g = good();
  g.values[0].type.shape = Shape{-1};
  EXPECT_EQ(code_of(g), "ir.type");
  g.values[0].type.shape = Shape{INT64_MAX, 2};
  EXPECT_EQ(code_of(g), "ir.type");
}
TEST(Verify, Symbols) {
  Graph g = good();
  g.values[0].type.shape.set(0, Symbol{"s0", {1, 3}});
  EXPECT_EQ(code_of(g), "");
  g.values[0].type.shape.set(0, Dim(Symbol{"s0", {1, 3}}) - 4);
  EXPECT_EQ(code_of(g), "ir.type") << "negative for every s0";
}
TEST(Verify, ScalesLengths) {
  Graph g = good();
  Scales s;
  s.zero_point = {0, 0};
  g.values[0].type.scales = s;
  EXPECT_EQ(code_of(g), "ir.type");
  s.zero_point = {0};
  s.axis = 0;
  g.values[0].type.scales = s;
  EXPECT_EQ(code_of(g), "ir.type");
}
TEST(Verify, RegionsAreVerifiedToo) {
  Graph g = good();
  g.nodes[1].regions[0].outputs[0] = 5;
  EXPECT_EQ(code_of(g), "ir.value-id");
}
TEST(Verify, Nesting) {
  Graph g;
  for (int i = 0; i < 100; ++i) {
    Graph outer;
    outer.nodes.push_back(
        {.op = Operator("a.b"), .inputs = {}, .attrs = {}, .outputs = {}, .loc = {}, .regions = {std::move(g)}});
    g = std::move(outer);
  }
  EXPECT_EQ(code_of(g), "ir.nesting");
}
TEST(Verify, States) {
  Graph g = good();
  const ValueId k = g.add_value("k", g[g.outputs[0]].type);
  g.states.push_back({"k", k, g.outputs[0]});
  EXPECT_EQ(code_of(g), "");
  g.states.push_back({"l", k, g.outputs[0]});
  EXPECT_EQ(code_of(g), "ir.state");
  g.states[1] = {"l", 99, g.outputs[0]};
  EXPECT_EQ(code_of(g), "ir.value-id");
  g.states[1] = {"l", g.inputs[0], g.outputs[0]};
  EXPECT_EQ(code_of(g), "ir.state") << "an input is the caller's";
  g.states.resize(1);
  g.states[0].initial = Bytes::of(std::vector<std::byte>(1));
  EXPECT_EQ(code_of(g), "ir.constant-size");
}

TEST(Shape, elements_of_what_is_empty) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ((Shape{large, large, 0}).elements(), 0);
  EXPECT_EQ((Shape{0, large, large}).elements(), 0);
  EXPECT_EQ((Shape{large, 3}).elements(), 3 * large);
}

// Numbers are given in order, also where thousands of values have one name: tried from 1 each time, these would take a
// minute.
TEST(Names, Unique) {
  Graph g;
  constexpr int count = 40000;
  for (int i = 0; i < count; ++i) g.add_value(i == 5 ? "x_3" : "x", TensorType{DType::f32, {}, {}});
  make_names_unique(g);
  EXPECT_EQ(g[0].name, "x");
  EXPECT_EQ(g[4].name, "x_4");
  EXPECT_EQ(g[5].name, "x_3_1");
  EXPECT_EQ(g[count - 1].name, "x_" + std::to_string(count - 2));
}

// What tosaic notes on nodes has the types that ir/marks.h says.
TEST(Verify, Marks) {
  Graph g = good();
  g.nodes[0].op = op::delegate;
  EXPECT_EQ(code_of(g), "ir.node") << "a delegate's call names its region";
  set_mark(g.nodes[0], mark::region, std::int64_t{0});
  EXPECT_EQ(code_of(g), "");
  g.nodes[1].op = higher_order::op::cond;
  g.nodes[1].attrs.set("kept", true);
  EXPECT_EQ(code_of(g), "ir.node");
  set_mark(g.nodes[1], mark::kept, std::string("its condition is computed"));
  EXPECT_EQ(code_of(g), "");
  g.nodes[1].op = Operator("my.branch");  // whose argument has the name
  g.nodes[1].attrs.set("kept", true);
  EXPECT_EQ(code_of(g), "");
}

}  // namespace
}  // namespace tosaic
