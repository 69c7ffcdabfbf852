// SPDX-License-Identifier: Apache-2.0
#include "ir/specialise.h"

#include <gtest/gtest.h>

#include "ir/states.h"

namespace tosaic::test {
namespace {

Graph graph_of(std::string_view text) {
  auto g = parse(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : render(g.error(), false));
  return g.ok() ? *g : Graph();
}

constexpr std::string_view two_sizes =
    R"(graph @main(%x: (s0 in 1..8)x4xf32, %y: (2*s0 + s1 for s0 in 1..8, s1 in 0..)xf32) -> (%z, %n, %k) {
  %n: i64(s0 in 1..8) = aten.sym_size.int(%x) {dim=0}
  %m: i64(4*s0 for s0 in 1..8) = _operator.mul() {a=$n(s0 in 1..8), b=4}
  %z: (4*s0 for s0 in 1..8)xf32 = aten.view.default(%x) {size=[$m(4*s0 for s0 in 1..8)]}
  %w: (s0 in 1..8)x2x2xf32 = aten.view.default(%x) {size=[$n(s0 in 1..8), 2, 2]}
  %k: (u0 in 0..32)xi64 = aten.nonzero.default(%z)
  %c: (s0 in 1..8)x2x2xf32 = cond(%w) (
    graph @then(%p: (s0 in 1..8)x2x2xf32) -> (%p) {
    }
  )
})";

TEST(Specialise, types_arguments_and_integers_become_numbers) {
  const Graph dynamic = graph_of(two_sizes);
  auto g = specialise(dynamic, {{"s0", 3}, {"s1", 5}});
  ASSERT_TRUE(g.ok()) << render(g.error(), false);
  EXPECT_TRUE(verify(*g).ok());
  EXPECT_EQ(print(*g), R"(graph @main(%x: 3x4xf32, %y: 11xf32) -> (%z, %n, %k) {
  %z: 12xf32 = aten.view.default(%x) {size=[12]}
  %k: (u0 in 0..32)xi64 = aten.nonzero.default(%z)
  %n: i64 = constant [3]
}
)") << "what values tell stays; the body of nobody's cond went with it";
  Graph used = dynamic;
  used.outputs.push_back(used.nodes.back().outputs[0]);
  auto body = specialise(used, {{"s0", 3}, {"s1", 5}});
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(to_string(body->nodes.back().regions[0].values[0].type), "3x2x2xf32");
}

TEST(Specialise, a_static_graph_is_itself) {
  const Graph g = graph_of("graph @main(%x: 2xf32) -> (%x) {\n}");
  auto same = specialise(g, {});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(print(*same), print(g));
}

TEST(Specialise, errors_name_the_symbol_its_range_and_the_size) {
  const auto why = [](std::string_view text, const Sizes& sizes) {
    auto g = specialise(graph_of(text), sizes);
    return g.ok() ? "" : g.error().code + ": " + g.error().message;
  };
  EXPECT_EQ(why(two_sizes, {{"s0", 9}, {"s1", 0}}), "model.size: x.0 is 9 (s0), outside of its range 1..8");
  EXPECT_EQ(why(two_sizes, {{"s0", 8}}), "model.size: size 's1' (0..) is not given: y.0 is 2*s0 + s1");
  EXPECT_EQ(why(two_sizes, {{"s0", 8}, {"s1", -1}}),
            "model.size: s1 is -1, outside of its range 0..: y.0 is 2*s0 + s1");
  EXPECT_EQ(why("graph @main(%x: (2*s0 + 1 for s0 in 1..8)xf32) -> (%x) {\n}", {{"s0", 9}}),
            "model.size: x.0 is 19 (2*s0 + 1), outside of its range 3..17");
  EXPECT_EQ(why(two_sizes, {{"s0", 8}, {"s1", 0}, {"batch", 1}}),
            "model.size: the program has no size 'batch'; it has s0 in 1..8, s1 in 0..");
  EXPECT_EQ(why("graph @main(%x: 2xf32) -> (%x) {\n}", {{"s0", 1}}),
            "model.size: the program has no size 's0'; all its sizes are fixed");
  EXPECT_EQ(
      why("graph @main(%x: (s0 in 1..8)x(s0 - 3 for s0 in 1..8)xf32) -> (%x) {\n}", {{"s0", 1}}),
      "model.size: 'x' cannot be (s0 in 1..8)x(s0 - 3 for s0 in 1..8) at these sizes: dimension 1 is negative (-2)");
  EXPECT_EQ(why("graph @main(%x: (s0 in 0..8)x(8//s0 for s0 in 0..8)xf32) -> (%x) {\n}", {{"s0", 0}}),
            "model.size: a size is divided by zero");
}

TEST(Specialise, sizes_follow_from_the_inputs_shapes) {
  const Graph g = graph_of(two_sizes);
  auto sizes = sizes_of(g, std::vector<Shape>{{3, 4}, {11}});
  ASSERT_TRUE(sizes.ok()) << sizes.error().message;
  EXPECT_EQ(*sizes, (Sizes{{"s0", 3}, {"s1", 5}})) << "s1 is known when s0 is";
  const auto why = [&](std::vector<Shape> shapes) {
    auto found = sizes_of(g, shapes);
    return found.ok() ? "" : found.error().message;
  };
  EXPECT_EQ(why({{3, 5}, {11}}), "x.1 is 5, and has to be 4");
  EXPECT_EQ(why({{3}, {11}}), "input 'x' is (s0 in 1..8)x4, and cannot be 3");
  EXPECT_EQ(why({{3, 4}, {11}, {1}}), "there are more shapes than inputs");
  const Graph related = graph_of("graph @main(%x: (2*s0 + 1 for s0 in 1..8)xf32, %y: (s0 in 1..8)xf32) -> (%x) {\n}");
  const auto of_related = [&](std::vector<Shape> shapes) {
    auto found = sizes_of(related, shapes);
    return found.ok() ? "" : found.error().message;
  };
  EXPECT_EQ(of_related({{7}, {4}}), "y.0 is 4, and has to be 3, as x.0 is 7 (2*s0 + 1)");
  EXPECT_EQ(of_related({{6}, {3}}), "x.0 is 6, and has to be 7 = 2*s0 + 1, as y.0 is 3 (s0)");
  const Graph even = graph_of("graph @main(%x: (2*s0 for s0 in 1..8)xf32) -> (%x) {\n}");
  EXPECT_EQ(sizes_of(even, std::vector<Shape>{{7}}).error().message, "x.0 is 2*s0, and cannot be 7");
  EXPECT_EQ(*sizes_of(related, std::vector<Shape>{{7}, {3}}), (Sizes{{"s0", 3}}));
  EXPECT_FALSE(sizes_of(related, std::vector<Shape>{{7}, {4}}).ok());
  EXPECT_FALSE(sizes_of(related, std::vector<Shape>{{6}, {3}}).ok());
}

TEST(Specialise, the_largest) {
  EXPECT_EQ(*largest_sizes({{"a", {1, 4}}, {"b", {{}, 9}}}), (Sizes{{"a", 4}, {"b", 9}}));
  EXPECT_EQ(largest_sizes({{"a", {1, {}}}}).error().message, "size 'a' (1..) has no upper bound");
}

TEST(States, are_inputs_and_outputs_for_a_while) {
  const std::string text = R"(graph @main(%x: 2xf32) -> (%y) {
  %buf: 2xf32 = state "k" = [1.0, 2.0]
  %y: 2xf32 = aten.add.Tensor(%x, %buf)
  state "k" %buf -> %y
}
)";
  Graph g = graph_of(text);
  const StatesAsTensors states(g);
  EXPECT_EQ(g.inputs.size(), 2u);
  EXPECT_EQ(g.outputs.size(), 2u);
  EXPECT_TRUE(states.is_input(1) && states.is_output(1) && !states.is_input(0));
  EXPECT_TRUE(verify(g).ok());
  states.restore(g);
  EXPECT_EQ(print(g), text);
}

}  // namespace
}  // namespace tosaic::test
