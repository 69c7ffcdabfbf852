// SPDX-License-Identifier: Apache-2.0
// Layer norms, quantised: the centring is one linear map with exact weights, weight and bias one convolution that keeps
// 16 bits in. That results stay near the float ones is quantised_test.cpp's to see.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "quantise/quantise.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {

Graph layer_norm(std::int64_t channels) {
  Graph graph;
  const auto numbers = [&](double from, double step) {
    std::vector<double> values;
    for (std::int64_t c = 0; c < channels; ++c) values.push_back(from + step * static_cast<double>(c));
    return constant_bytes(DType::f32, values);
  };
  const TensorType rows{DType::f32, Shape{1, 5, channels}, {}}, row{DType::f32, Shape{channels}, {}};
  const ValueId x = graph.add_value("x", rows), weight = graph.add_value("weight", row, numbers(0.5, 0.125)),
                bias = graph.add_value("bias", row, numbers(-1, 0.25)), y = graph.add_value("y", rows);
  Node node;
  node.op = aten::op::layer_norm;
  node.inputs = {x, weight, bias};
  node.attrs.set("normalized_shape", std::vector<std::int64_t>{channels});
  node.outputs = {y};
  graph.nodes.push_back(std::move(node));
  graph.inputs = {x};
  graph.outputs = {y};
  return graph;
}

Graph quantised(Graph graph) {
  const TensorType type = graph[graph.inputs[0]].type;
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.shape.elements(); ++i)
    values.push_back(static_cast<double>((i * 37) % 101) / 25 - 2);
  auto result = quantise(std::move(graph), {{Tensor{type, constant_bytes(DType::f32, values)}}}, {}, {});
  EXPECT_TRUE(result.ok());
  return *std::move(result);
}

std::vector<const Node*> calls(const Graph& graph, const std::string& op) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes)
    if (node.op.name() == op) found.push_back(&node);
  return found;
}

TEST(LinearForms, a_layer_norm_is_centred_and_scaled_in_one_step_each) {
  const std::int64_t channels = 8;
  const Graph graph = quantised(layer_norm(channels));
  const auto centring = calls(graph, "aten.linear.default"), scaling = calls(graph, "aten.conv1d.default");
  ASSERT_EQ(centring.size(), 1u) << print(graph);
  ASSERT_EQ(scaling.size(), 1u) << print(graph);
  for (const Node* mean : calls(graph, "aten.mean.dim"))  // of the squares
    EXPECT_EQ(mean->inputs[0], calls(graph, "aten.mul.Tensor")[0]->outputs[0]) << print(graph);
  EXPECT_TRUE(calls(graph, "aten.add.Tensor").empty());
  EXPECT_EQ(graph[scaling[0]->inputs[0]].type.dtype, DType::i16);
  const Value& weight = graph[centring[0]->inputs[1]];
  ASSERT_EQ(weight.type.dtype, DType::i8);
  for (std::int64_t i = 0; i < channels * channels; ++i) {
    const std::int64_t row = i / channels, column = i % channels;
    const double real = weight.type.scales->scale[static_cast<std::size_t>(row)] *
                        weight.constant.as<std::int8_t>()[static_cast<std::size_t>(i)];
    EXPECT_NEAR(real, (row == column ? 1.0 : 0.0) - 1.0 / static_cast<double>(channels), 1e-7);
  }
}

TEST(LinearForms, weights_of_a_wide_centring_would_not_be_exact) {
  const Graph graph = quantised(layer_norm(129));
  EXPECT_TRUE(calls(graph, "aten.linear.default").empty());
  EXPECT_EQ(calls(graph, "aten.conv1d.default").size(), 1u);
}

}  // namespace
}  // namespace tosaic
