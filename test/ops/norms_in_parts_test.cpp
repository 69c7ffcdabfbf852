// SPDX-License-Identifier: Apache-2.0
// How often samples are run: norms in parts are functions of tensors that have been seen, norms of scaled rows are not.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "execute/executable.h"
#include "ir/aten_operators.h"
#include "lower/lower.h"
#include "quantise/quantise.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

constexpr std::int64_t rows = 6, channels = 200;
constexpr int samples_each = 3;

Bytes random_floats(std::int64_t n, std::mt19937& random, double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<double> values(static_cast<std::size_t>(n));
  for (double& value : values) value = normal(random);
  return constant_bytes(DType::f32, values);
}

// A linear layer, a layer norm, and another linear layer.
Graph normalised(std::mt19937& random) {
  Graph graph;
  const TensorType type{DType::f32, Shape{1, rows, channels}, {}};
  const auto constant = [&](const std::string& name, const Shape& shape, double deviation) {
    return graph.add_value(name, {DType::f32, shape, {}}, random_floats(shape.elements(), random, deviation));
  };
  const auto call = [&](const Operator& op, std::vector<ValueId> inputs, const std::string& name) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    if (op == aten::op::layer_norm) node.attrs.set("normalized_shape", std::vector<std::int64_t>{channels});
    node.outputs = {graph.add_value(name, type)};
    graph.nodes.push_back(node);
    return node.outputs[0];
  };
  const ValueId x = graph.add_value("x", type);
  const ValueId first = call(aten::op::linear, {x, constant("v", {channels, channels}, 0.1), no_value}, "first");
  const ValueId norm =
      call(aten::op::layer_norm, {first, constant("weight", {channels}, 1), constant("bias", {channels}, 0.3)}, "norm");
  graph.inputs = {x};
  graph.outputs = {call(aten::op::linear, {norm, constant("w", {channels, channels}, 0.1), no_value}, "last")};
  return graph;
}

// Tensors by name in place of the outputs: what each has at most, over all samples, by its sign.
std::map<std::string, std::pair<double, double>> ranges_of(Graph graph,
                                                           const std::vector<std::vector<Tensor>>& samples) {
  graph.outputs.clear();
  for (const Node& node : graph.nodes) graph.outputs.push_back(node.outputs[0]);
  std::vector<std::string> names;
  for (ValueId v : graph.outputs) names.push_back(graph[v].name);
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok());
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
  EXPECT_TRUE(program.ok());
  std::map<std::string, std::pair<double, double>> ranges;
  for (const auto& sample : samples) {
    const auto results = program->run(sample);
    EXPECT_TRUE(results.ok());
    for (std::size_t i = 0; i < names.size(); ++i)
      for (const float x : (*results)[i].data.as<float>()) {
        auto& [lowest, highest] = ranges[names[i]];
        lowest = std::min(lowest, static_cast<double>(x));
        highest = std::max(highest, static_cast<double>(x));
      }
  }
  return ranges;
}

struct Quantised {
  Graph floats, graph;
  std::vector<std::vector<Tensor>> samples;
  int runs = 0;
};
// `growth`: by what factor each row is larger than the one before it.
Quantised quantised(double growth) {
  std::mt19937 random(7);
  Quantised result;
  result.floats = normalised(random);
  const TensorType type = result.floats[result.floats.inputs[0]].type;
  for (int s = 0; s < samples_each; ++s) {
    std::vector<double> x;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::normal_distribution<double> normal(0, std::pow(growth, static_cast<double>(row)));
      for (std::int64_t i = 0; i < channels; ++i) x.push_back(normal(random));
    }
    result.samples.push_back({Tensor{type, constant_bytes(DType::f32, x)}});
  }
  QuantiseOptions options;
  options.observer = Observer::minmax;
  options.progress = [&](std::size_t, std::size_t) { ++result.runs; };
  auto done = quantise(result.floats, result.samples, options, {});
  EXPECT_TRUE(done.ok()) << done.error().message;
  result.graph = *std::move(done);
  return result;
}

std::size_t count(const Graph& graph, const Operator& op) {
  return static_cast<std::size_t>(std::ranges::count(graph.nodes, op, &Node::op));
}

TEST(NormsInParts, take_one_run_of_the_samples) {
  const Quantised found = quantised(1);
  EXPECT_EQ(found.runs, samples_each);
  EXPECT_EQ(count(found.graph, aten::op::amax), 0u) << print(found.graph);
  EXPECT_GT(count(found.graph, aten::op::rsqrt), 1u) << print(found.graph);  // one for each part
}

TEST(NormsInParts, leave_all_other_tensors_the_ranges_of_the_samples) {
  const Quantised found = quantised(1);
  for (const auto& [name, range] : ranges_of(found.floats, found.samples)) {
    const auto v = std::ranges::find(found.graph.values, name, &Value::name);
    ASSERT_NE(v, found.graph.values.end()) << name;
    ASSERT_TRUE(v->type.quantised() && v->type.dtype == DType::i8) << name;
    EXPECT_NEAR(v->type.scales->scale[0], (range.second - range.first) / 255, 1e-6) << name;
  }
}

TEST(NormsInParts, scaled_rows_take_another_run_each_time) {
  const Quantised found = quantised(3);
  const std::size_t scaled = count(found.graph, aten::op::amax);
  EXPECT_GT(scaled, 0u);
  EXPECT_EQ(found.runs, static_cast<int>(1 + scaled) * samples_each) << print(found.graph);
}

}  // namespace
}  // namespace tosaic
