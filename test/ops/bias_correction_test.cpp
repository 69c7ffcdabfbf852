// SPDX-License-Identifier: Apache-2.0
// Bias correction: on the samples, each channel of a layer with rounded weights has the mean that it had before.
#include <gtest/gtest.h>

#include <random>

#include "execute/executable.h"
#include "lower/lower.h"
#include "quantise/quantise.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

Bytes random_floats(std::size_t n, std::mt19937& random, float mean) {
  std::normal_distribution<float> normal(mean, 1);
  float* to = nullptr;
  Bytes bytes = Bytes::fresh(n, to);
  for (std::size_t i = 0; i < n; ++i) to[i] = normal(random);
  return bytes;
}

Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok());
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
  EXPECT_TRUE(program.ok());
  return program->run(inputs)->at(0);
}

const Node& layer_of(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.inputs.size() > 1 && node.inputs[1] != no_value && graph[node.inputs[1]].is_constant()) return node;
  throw std::logic_error("no layer");
}

struct Layer {
  const char *name, *x, *w, *y, *call;
  int channel_dim;
};
std::ostream& operator<<(std::ostream& to, const Layer& layer) { return to << layer.name; }

class BiasCorrection : public testing::TestWithParam<Layer> {
 protected:
  // The float layer, with random weights.
  Graph program() {
    const Layer& l = GetParam();
    auto graph = parse(std::string("graph @main(%x: ") + l.x + "xf32, %w: " + l.w + "xf32) -> (%y) {\n  %y: " + l.y +
                       "xf32 = " + l.call + "\n}\n");
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    const ValueId w = graph->inputs.back();
    graph->inputs.pop_back();
    (*graph)[w].constant = random_floats(elements((*graph)[w]), random_, 0);
    return *std::move(graph);
  }
  std::vector<std::vector<Tensor>> samples(const Graph& graph) {
    std::vector<std::vector<Tensor>> all;
    const Value& x = graph[graph.inputs[0]];
    for (int i = 0; i < 5; ++i) all.push_back({{x.type, random_floats(elements(x), random_, 2)}});
    return all;
  }
  static std::size_t elements(const Value& v) { return static_cast<std::size_t>(v.type.shape.elements()); }

  // The mean by channel over samples and positions.
  std::vector<double> means(const Graph& graph, const std::vector<std::vector<Tensor>>& samples) const {
    const Shape& shape = graph[graph.outputs[0]].type.shape;
    std::size_t inner = 1;
    for (int d = GetParam().channel_dim + 1; d < shape.rank(); ++d) inner *= static_cast<std::size_t>(shape.size(d));
    std::vector<double> sum(static_cast<std::size_t>(shape.size(GetParam().channel_dim)), 0);
    for (const auto& sample : samples) {
      const Tensor y = run(graph, sample);
      for (std::size_t i = 0; i < y.data.as<float>().size(); ++i) sum[i / inner % sum.size()] += y.data.as<float>()[i];
    }
    const auto all = static_cast<double>(samples.size()) * static_cast<double>(shape.elements());
    for (double& s : sum) s *= static_cast<double>(sum.size()) / all;
    return sum;
  }

  // The float layer with what the quantised one has for weight and bias.
  static Graph with_weights_of(const Graph& quantised, Graph graph) {
    const Node& layer = layer_of(quantised);
    const Value &w = quantised[layer.inputs[1]], &b = quantised[layer.inputs[2]];
    Node& to = graph.nodes[0];
    const Scales& scales = *w.type.scales;
    std::size_t inner = 1;
    for (int d = scales.axis + 1; scales.axis >= 0 && d < w.type.rank(); ++d)
      inner *= static_cast<std::size_t>(w.type.shape.size(d));
    std::vector<double> values;
    for (std::size_t i = 0; i < elements(w); ++i)
      values.push_back(static_cast<double>(w.constant.as<std::int8_t>()[i]) *
                       scales.scale[i / inner % scales.scale.size()]);
    graph[to.inputs[1]].constant = constant_bytes(DType::f32, std::span<const double>(values));
    to.inputs.resize(3, no_value);
    to.inputs[2] = graph.add_value("b", b.type, b.constant);
    return graph;
  }

  std::mt19937 random_{7};
};

TEST_P(BiasCorrection, keeps_the_mean_of_each_channel) {
  const Graph graph = program();
  const auto given = samples(graph);
  QuantiseOptions options;
  options.threads = 1;
  auto quantised = quantise(graph, given, options, {});
  ASSERT_TRUE(quantised.ok()) << quantised.error().message;
  const std::vector<double> before = means(graph, given), after = means(with_weights_of(*quantised, graph), given);
  for (std::size_t c = 0; c < before.size(); ++c) EXPECT_NEAR(after[c], before[c], 2e-5 * std::fabs(before[c]) + 1e-5);
}

TEST_P(BiasCorrection, can_be_left_out) {
  const Graph graph = program();
  QuantiseOptions options;
  options.threads = 1;
  options.bias_correction = false;
  auto quantised = quantise(graph, samples(graph), options, {});
  ASSERT_TRUE(quantised.ok()) << quantised.error().message;
  const Node& layer = layer_of(*quantised);
  EXPECT_TRUE(layer.inputs.size() < 3 || layer.inputs[2] == no_value);
}

// Paddings see fewer elements at the borders, groups fewer channels.
const Layer layers[] = {
    {"linear", "2x3x16", "8x16", "2x3x8", "aten.linear.default(%x, %w, none)", 2},
    {"conv1d", "1x4x9", "6x4x3", "1x6x9", "aten.conv1d.default(%x, %w, none) {padding=[1]}", 1},
    {"conv2d", "2x3x8x7", "5x3x3x3", "2x5x4x4", "aten.conv2d.default(%x, %w, none) {stride=[2, 2], padding=[1, 1]}", 1},
    {"depthwise", "1x6x5x5", "6x1x3x3", "1x6x5x5", "aten.conv2d.default(%x, %w, none) {padding=[1, 1], groups=6}", 1},
    {"conv_transpose2d", "1x4x5x5", "4x3x2x2", "1x3x10x10", "aten.conv_transpose2d.input(%x, %w, none) {stride=[2, 2]}",
     1},
    {"overlapping_transpose", "2x4x5x6", "4x3x3x4", "2x6x9x19",
     "aten.conv_transpose2d.input(%x, %w, none) {stride=[2, 3], padding=[1, 0], output_padding=[0, 0], groups=2}", 1},
    {"dilated_transpose", "1x4x7", "4x3x3", "1x3x14",
     "aten.conv_transpose1d.default(%x, %w, none) {stride=[2], padding=[2], output_padding=[1], dilation=[2]}", 1},
    {"dilated_groups", "1x6x9x9", "4x3x3x3", "1x4x4x4",
     "aten.conv2d.default(%x, %w, none) {groups=2, stride=[2, 2], padding=[1, 1], dilation=[2, 2]}", 1},
    {"conv3d", "1x3x4x5x6", "5x3x3x3x3", "1x5x4x3x3",
     "aten.conv3d.default(%x, %w, none) {padding=[1, 1, 1], stride=[1, 2, 2]}", 1},
    {"row", "16", "8x16", "8", "aten.linear.default(%x, %w, none)", 0},
};
INSTANTIATE_TEST_SUITE_P(layers, BiasCorrection, testing::ValuesIn(layers),
                         [](const auto& layer) { return std::string(layer.param.name); });

// A range holds all of a table; the mean is that of the rows that samples choose.
TEST(BiasCorrectionOfEmbedding, counts_the_chosen_rows_alone) {
  auto graph = parse(
      "graph @main(%i: 1x3xi32, %table: 50x16xf32, %w: 4x16xf32) -> (%y) {\n"
      "  %x: 1x3x16xf32 = aten.embedding.default(%table, %i)\n"
      "  %y: 1x3x4xf32 = aten.linear.default(%x, %w, none)\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const ValueId w = graph->inputs[2], table = graph->inputs[1];
  graph->inputs.resize(1);
  std::mt19937 random(7);
  (*graph)[table].constant = random_floats(50 * 16, random, 2);
  (*graph)[w].constant = random_floats(4 * 16, random, 0);
  const std::vector<double> rows = {3, 20, 41};
  const Tensor chosen{(*graph)[graph->inputs[0]].type, constant_bytes(DType::i32, std::span<const double>(rows))};
  QuantiseOptions options;
  options.threads = 1;
  auto quantised = quantise(*graph, {{chosen}}, options, {});
  ASSERT_TRUE(quantised.ok()) << quantised.error().message;
  for (const Node& node : quantised->nodes) {
    if (node.op.base() != "linear") continue;
    const Value& q = (*quantised)[node.inputs[1]];
    const auto x = (*graph)[table].constant.as<float>(), exact = (*graph)[w].constant.as<float>();
    for (std::size_t c = 0; c < 4; ++c) {
      double lost = 0;
      for (const double row : rows)
        for (std::size_t k = 0; k < 16; ++k)
          lost += (exact[c * 16 + k] - q.constant.as<std::int8_t>()[c * 16 + k] * q.type.scales->scale[c]) *
                  x[static_cast<std::size_t>(row) * 16 + k] / 3;
      EXPECT_NEAR((*quantised)[node.inputs[2]].constant.as<float>()[c], lost, 1e-5);
    }
    return;
  }
  FAIL() << "no linear layer";
}

}  // namespace
}  // namespace tosaic::domain
