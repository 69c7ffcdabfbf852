// SPDX-License-Identifier: Apache-2.0
// The rows that weights are multiplied with, against one element at a time.
#include "quantise/layer_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quantise/layer_means.h"
#include "quantise/plan.h"

namespace tosaic::domain {
namespace {

struct Layer {
  const char *name, *x, *w, *y, *call;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
std::ostream& operator<<(std::ostream& to, const Layer& layer) { return to << layer.name; }

class LayerRowsTest : public testing::TestWithParam<Layer> {
 protected:
  LayerRowsTest() {
    const Layer& l = GetParam();
    auto parsed = parse(std::string("graph @main(%x: ") + l.x + "xf32, %w: " + l.w + "xf32) -> (%y) {\n  %y: " + l.y +
                        "xf32 = " + l.call + "\n}\n");
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    graph = *std::move(parsed);
    const ValueId w = graph.inputs[1];
    graph.inputs.pop_back();
    graph[w].constant = Bytes::of(std::vector<float>(static_cast<std::size_t>(graph[w].type.shape.elements()), 1.0f));
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    x.resize(static_cast<std::size_t>(type().shape.elements()));
    for (float& v : x) v = normal(random);
    auto program = expanded(graph);
    EXPECT_TRUE(program.ok());
    graph = program->graph;
    options.rounding = Rounding::least_squares;
    plan = plan_quantisation(*program, options);
  }
  const TensorType& type() const { return graph[graph.inputs[0]].type; }

  // All rows, in order.
  std::vector<float> expected() const {
    const Layer& l = GetParam();
    const Shape &in = type().shape, &w = graph[graph.nodes[0].inputs[1]].type.shape,
                &out = graph[graph.outputs[0]].type.shape;
    if (w.rank() == 2) return x;
    // As two spatial dims, the first of which may be 1.
    const auto dim = [](const Shape& s, int from_end) {
      return from_end < s.rank() ? s.size(s.rank() - 1 - from_end) : 1;
    };
    const bool plane = w.rank() == 4;
    const std::int64_t height = plane ? dim(in, 1) : 1, width = dim(in, 0), channels = dim(in, plane ? 2 : 1);
    const std::int64_t kh = plane ? w.size(2) : 1, kw = dim(w, 0), oh = plane ? dim(out, 1) : 1, ow = dim(out, 0);
    const std::int64_t batch = in.elements() / (channels * height * width);
    std::vector<float> all;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t y = 0; y < oh; ++y)
        for (std::int64_t at = 0; at < ow; ++at)
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t i = 0; i < kh; ++i)
              for (std::int64_t j = 0; j < kw; ++j) {
                const std::int64_t row = plane ? y * l.stride - l.padding + i * l.dilation : 0,
                                   column = at * l.stride - l.padding + j * l.dilation;
                const bool inside = row >= 0 && row < height && column >= 0 && column < width;
                all.push_back(inside ? x[static_cast<std::size_t>(((n * channels + c) * height + row) * width + column)]
                                     : 0);
              }
    return all;
  }

  Graph graph;
  QuantiseOptions options;
  QuantisationPlan plan;
  std::vector<float> x;
  ThreadPool pool{2};
};

TEST_P(LayerRowsTest, are_all_windows_where_these_are_few) {
  LayerRows rows(graph, plan, options, 1);
  rows.see(graph.inputs[0], {x, type(), {}}, pool);
  ASSERT_EQ(rows.layers().size(), 1u);
  const LayersOfRows& layers = rows.layers()[0];
  EXPECT_EQ(layers.groups, static_cast<std::size_t>(GetParam().groups));
  EXPECT_TRUE(layers.centred);
  EXPECT_EQ(layers.rows, expected());
  rows.see(graph.inputs[0], {x, type(), {}}, pool);  // more than there are samples
  EXPECT_EQ(layers.rows, expected());
}

// As the CPU executor has it: channels last, other dims in one.
TEST_P(LayerRowsTest, are_found_behind_moves) {
  const int rank = type().rank(), channel = rank - graph[graph.nodes[0].inputs[1]].type.rank() + 1;
  const Shape& shape = type().shape;
  std::vector<std::int64_t> sizes, perms, last;
  for (int d = 0; d < rank; ++d)
    if (d != channel) last.push_back(d);
  last.push_back(channel);
  for (const std::int64_t d : last) sizes.push_back(shape.size(static_cast<int>(d)));
  for (int d = 0; d < rank; ++d) perms.push_back(std::ranges::find(last, d) - last.begin());
  std::vector<float> moved(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {  // i: in x
    std::vector<std::int64_t> at(static_cast<std::size_t>(rank));
    auto rest = static_cast<std::int64_t>(i);
    for (int d = rank; d-- > 0; rest /= shape.size(d)) at[static_cast<std::size_t>(d)] = rest % shape.size(d);
    std::int64_t to = 0;
    for (std::size_t d = 0; d < last.size(); ++d) to = to * sizes[d] + at[static_cast<std::size_t>(last[d])];
    moved[static_cast<std::size_t>(to)] = x[i];
  }
  const TensorType as_sizes{DType::f32, Shape(sizes), {}}, flat{DType::f32, Shape{shape.elements()}, {}};
  Node reshape{.op = Operator("tosa.reshape")},
      transpose{.op = Operator("tosa.transpose"), .attrs = {{"perms", perms}}};
  LayerRows rows(graph, plan, options, 1);
  rows.see(graph.inputs[0], {moved, flat, {{reshape, as_sizes}, {transpose, type()}}}, pool);
  EXPECT_EQ(rows.layers().at(0).rows, expected());
}

// In whatever order, sums in double are as near to each other as this.
TEST_P(LayerRowsTest, have_the_means_of_layers) {
  const auto window = window_of(graph, graph.nodes[0]);
  ASSERT_TRUE(window);
  LayerMeans means(2);
  means.want(*window);
  EXPECT_TRUE(means.of(*window).empty());
  for (int look = 0; look < 3; ++look)
    means.see(graph.inputs[0], {x, type(), {}}, pool);  // more than there are samples
  const std::vector<float> rows = expected();
  std::vector<double> wanted(means.of(*window).size(), 0);
  ASSERT_EQ(rows.size() % wanted.size(), 0u);
  for (std::size_t i = 0; i < rows.size(); ++i)
    wanted[i % wanted.size()] += rows[i] * static_cast<double>(wanted.size()) / static_cast<double>(rows.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(means.of(*window)[i], wanted[i], 1e-12) << i;
  x[0] = NAN;
  LayerMeans not_finite(1);
  not_finite.want(*window);
  not_finite.see(graph.inputs[0], {x, type(), {}}, pool);
  EXPECT_EQ(not_finite.of(*window).empty(), rows.size() >= x.size());
}

TEST_P(LayerRowsTest, do_not_depend_on_threads) {
  std::vector<std::vector<float>> found;
  for (const int threads : {1, 2}) {
    ThreadPool some(threads);
    LayerRows rows(graph, plan, options, 3000);  // fewer rows than looks
    for (int sample = 0; sample < 100; ++sample) rows.see(graph.inputs[0], {x, type(), {}}, some);
    EXPECT_EQ(rows.layers()[0].count(), 34u);
    found.push_back(rows.layers()[0].rows);
  }
  EXPECT_EQ(found[0], found[1]);
}

const Layer layers[] = {
    {"linear", "2x3x16", "8x16", "2x3x8", "aten.linear.default(%x, %w, none)"},
    {"conv1d", "1x4x9", "6x4x3", "1x6x9", "aten.conv1d.default(%x, %w, none) {padding=[1]}", 1, 1},
    {"without_batch", "4x9", "6x4x3", "6x7", "aten.conv1d.default(%x, %w, none)"},
    {"strided", "2x3x8x7", "5x3x3x3", "2x5x4x4", "aten.conv2d.default(%x, %w, none) {stride=[2, 2], padding=[1, 1]}", 2,
     1},
    {"dilated", "1x3x9x9", "2x3x3x3", "1x2x9x9", "aten.conv2d.default(%x, %w, none) {padding=[2, 2], dilation=[2, 2]}",
     1, 2, 2},
    {"same", "1x2x6x7", "3x2x3x3", "1x3x6x7", "aten.conv2d.padding(%x, %w, none) {padding=\"same\"}", 1, 1},
    {"depthwise", "1x6x5x5", "6x1x3x3", "1x6x5x5", "aten.conv2d.default(%x, %w, none) {padding=[1, 1], groups=6}", 1, 1,
     1, 6},
    {"grouped", "1x6x5x5", "4x3x3x3", "1x4x3x3", "aten.conv2d.default(%x, %w, none) {groups=2}", 1, 0, 1, 2},
};
INSTANTIATE_TEST_SUITE_P(layers, LayerRowsTest, testing::ValuesIn(layers),
                         [](const auto& layer) { return std::string(layer.param.name); });

}  // namespace
}  // namespace tosaic::domain
