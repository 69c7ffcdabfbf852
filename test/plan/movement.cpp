// SPDX-License-Identifier: Apache-2.0
// Movements carried out element by element, against TOSA's own evaluation of the same operators.
#include "plan/movement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstring>

#include "ir/text.h"

namespace tosaic::plan {
namespace {

// Calls f(read element, write element) for every place of the walk.
template <class F>
void walk(const Move& move, const F& f, std::size_t d = 0, std::int64_t read = 0, std::int64_t write = 0) {
  if (d == move.dims.size()) return f(move.read.offset + read, move.write.offset + write);
  for (std::int64_t i = 0; i < move.dims[d]; ++i)
    walk(move, f, d + 1, read + i * move.read.strides[d], write + i * move.write.strides[d]);
}

struct Case {
  const char* name;
  const char* text;  // operands are 2x3x4 and 2x5x4
};

class Movements : public testing::TestWithParam<Case> {};

TEST_P(Movements, AreTheOperator) {
  auto parsed = parse(GetParam().text);
  ASSERT_TRUE(parsed.ok()) << render(parsed.error(), false);
  Graph& graph = *parsed;
  std::int32_t next = 1;
  for (ValueId v : graph.inputs) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(graph[v].type.shape.elements()));
    for (auto& n : numbers) n = next++;
    graph[v].constant = Bytes::copy(numbers.data(), numbers.size() * 4);
  }
  const Node& node = graph.nodes.back();
  const TensorType& type = graph[node.outputs[0]].type;
  const auto expected = tosa::constant_result(graph, node, *tosa::find(node.op), type);
  ASSERT_TRUE(expected.has_value());

  const auto movement = movement_of(graph, node);
  ASSERT_TRUE(movement.has_value());
  std::vector<std::int32_t> found(static_cast<std::size_t>(type.shape.elements()), 0);
  if (movement->fill != no_value)
    for (auto& f : found) f = graph[movement->fill].constant.as<std::int32_t>()[0];
  for (const Move& move : movement->moves)
    walk(move, [&](std::int64_t read, std::int64_t write) {
      found.at(static_cast<std::size_t>(write)) =
          graph[move.from].constant.as<std::int32_t>()[static_cast<std::size_t>(read)];
    });
  EXPECT_EQ(std::memcmp(found.data(), expected->data(), expected->size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Layout, Movements,
                         testing::Values(Case{"transpose", R"(graph @g(%x: 2x3x4xi32) -> (%y) {
                      %y: 4x2x3xi32 = tosa.transpose(%x) {perms=[2, 0, 1]}
                    })"},
                                         Case{"slice", R"(graph @g(%x: 2x3x4xi32) -> (%y) {
                      %s: 3xshape = constant [1, 0, 2]
                      %z: 3xshape = constant [1, 2, 2]
                      %y: 1x2x2xi32 = tosa.slice(%x, %s, %z)
                    })"},
                                         Case{"reverse", R"(graph @g(%x: 2x3x4xi32) -> (%y) {
                      %y: 2x3x4xi32 = tosa.reverse(%x) {axis=1}
                    })"},
                                         Case{"tile", R"(graph @g(%x: 2x3x4xi32) -> (%y) {
                      %m: 3xshape = constant [1, 2, 3]
                      %y: 2x6x12xi32 = tosa.tile(%x, %m)
                    })"},
                                         Case{"concat", R"(graph @g(%x: 2x3x4xi32, %z: 2x5x4xi32) -> (%y) {
                      %y: 2x11x4xi32 = tosa.concat(%x, %z, %x) {axis=1}
                    })"},
                                         Case{"pad", R"(graph @g(%x: 2x3x4xi32) -> (%y) {
                      %p: 6xshape = constant [0, 1, 2, 0, 1, 1]
                      %v: 1xi32 = constant [-7]
                      %y: 3x5x6xi32 = tosa.pad(%x, %p, %v)
                    })"}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Movement, OnlyWholeOperandsInOneRunArePieces) {
  auto graph = parse(R"(graph @g(%a: 1x2x4xi32, %b: 1x3x4xi32) -> (%y, %z) {
    %y: 1x5x4xi32 = tosa.concat(%a, %b) {axis=1}
    %z: 1x2x8xi32 = tosa.concat(%a, %a) {axis=2}
  })");
  ASSERT_TRUE(graph.ok());
  const auto rows = movement_of(*graph, graph->nodes[0]), columns = movement_of(*graph, graph->nodes[1]);
  EXPECT_TRUE(rows->moves[0].is_dense_part() && rows->moves[1].is_dense_part());
  EXPECT_EQ(rows->moves[1].write.offset, 8);
  EXPECT_FALSE(columns->moves[0].is_dense_part());
}

TEST(Movement, AmountsThatAreNotKnownAreNoMovement) {
  auto graph = parse(R"(graph @g(%x: 2x3xi32, %p: 4xshape, %v: 1xi32) -> (%y) {
    %y: 3x3xi32 = tosa.pad(%x, %p, %v)
  })");
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE(movement_of(*graph, graph->nodes[0]).has_value());
}

}  // namespace
}  // namespace tosaic::plan
