// SPDX-License-Identifier: Apache-2.0
// Weights of 4 bits as TOSA files of floats hold them, two in a byte: read where they lie, and with the results of
// those that are a byte each.
#include <algorithm>

#include "cpu/net.h"
#include "plan/quantised_constant.h"
#include "tidy/tidy.h"

namespace tosaic::test {
namespace {

// A layer of `rows` rows of `groups` groups, and what the graph makes of its values.
struct Layer {
  Net net;
  ValueId reals = no_value;
  Layer(std::uint32_t seed, std::int64_t rows, std::int64_t groups, std::int64_t group, double lowest, double highest)
      : net(seed) {
    const std::int64_t depth = groups * group;
    reals = net.node("cast", {net.constant(DType::i8, {rows, groups, group}, lowest, highest)}, {}, DType::f32);
    const ValueId scales = net.constant(DType::f32, {rows, groups, 1}, 0.01, 0.1);
    const ValueId weight =
        net.node("reshape", {net.node("mul", {reals, scales, net.zero(DType::i8)}), net.shape({rows, 1, 1, depth})});
    net.output(net.conv2d(net.input(DType::f32, {1, 1, 3, depth}, -1, 1), weight));
  }
};

std::optional<plan::QuantisedConstant> constant_of(const Graph& graph, const std::string& name) {
  const auto producer = producers(graph);
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].name == name) return plan::quantised_constant(graph, producer, v);
  return std::nullopt;
}

TEST(PackedValues, AreReadWhereTheyLie) {
  for (const std::int64_t group : {8, 24, 32, 64}) {
    const Layer layer(1, 40, 32 * 64 / group, group, -8, 7);
    const std::string name = layer.net.graph[layer.reals].name;
    Graph packed = layer.net.graph;
    pack_int4(packed);
    const auto bytes = constant_of(layer.net.graph, name), pairs = constant_of(packed, name);
    ASSERT_TRUE(bytes && pairs);
    EXPECT_EQ(bytes->run, 0);
    EXPECT_EQ(pairs->run, group);
    EXPECT_TRUE(bytes->fits_four_bits() && pairs->fits_four_bits());
    ASSERT_EQ(bytes->size(), pairs->size());
    EXPECT_EQ(pairs->bytes.size() * 2, bytes->bytes.size());
    std::mt19937 random(2);
    for (int i = 0; i < 200; ++i) {
      const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(bytes->size()));
      const auto count = static_cast<std::size_t>(1 + random() % 300);
      std::vector<std::int8_t> a(std::min(count, static_cast<std::size_t>(bytes->size() - first))), b(a.size());
      bytes->read(first, a);
      pairs->read(first, b);
      EXPECT_EQ(a, b) << first;
    }
  }
}

TEST(PackedValues, GiveTheSameResults) {
  for (const std::int64_t group : {8, 20, 32})
    for (const std::int64_t rows : {33, 64}) {
      const Layer layer(3, rows, 64, group, -8, 7);
      Graph packed = layer.net.graph;
      pack_int4(packed);
      ASSERT_GT(packed.nodes.size(), layer.net.graph.nodes.size());
      std::vector<Tensor> results;
      for (const Graph* graph : {&layer.net.graph, static_cast<const Graph*>(&packed)}) {
        auto program = cpu::Program::compile(*graph);
        ASSERT_TRUE(program.ok());
        EXPECT_EQ(program->kernels(), std::vector<std::string_view>{"coded_f32"});
        for (int again = 0; again < 2; ++again) {
          auto got = program->run(layer.net.inputs);
          ASSERT_TRUE(got.ok());
          results.push_back(got->at(0));
        }
      }
      for (const Tensor& other : results) EXPECT_EQ(other.data, results[0].data) << group << ' ' << rows;
    }
}

TEST(PackedValues, OfEightBitsStayBytes) {
  const Layer layer(5, 40, 8, 64, -128, 127);
  const auto found = constant_of(layer.net.graph, layer.net.graph[layer.reals].name);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->fits_four_bits());
  EXPECT_EQ(found->bytes.data(), layer.net.graph[layer.net.graph.nodes[0].inputs[0]].constant.data());
}

// Arithmetic that is only like it is none of it.
TEST(PackedValues, OtherArithmeticIsNone) {
  const Layer layer(1, 40, 32, 64, -8, 7);
  const std::string name = layer.net.graph[layer.reals].name;
  Graph packed = layer.net.graph;
  pack_int4(packed);
  for (Value& value : packed.values) {
    if (!value.is_constant() || value.type.dtype != DType::f32 || value.type.shape.elements() != 1) continue;
    const Bytes right = value.constant;
    const bool is_part = element_as_double(DType::f32, right.data(), 0) != 0;
    value.constant = constant_bytes(DType::f32, std::vector<double>{3});
    EXPECT_EQ(constant_of(packed, name).has_value(), !is_part);
    value.constant = right;
  }
  EXPECT_TRUE(constant_of(packed, name));
}

}  // namespace
}  // namespace tosaic::test
