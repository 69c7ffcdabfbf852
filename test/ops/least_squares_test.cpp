// SPDX-License-Identifier: Apache-2.0
// Rounding by least squares: sums of channels with rounded weights are off by less than with the nearest values.
#include "quantise/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "execute/executable.h"
#include "lower/lower.h"
#include "quantise/quantise.h"
#include "quantise/quantise_weight.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

constexpr std::size_t rows = 300;

// Neighbours are alike, as pixels are.
std::vector<float> alike(std::size_t count, std::size_t inputs, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(count * inputs);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (i % inputs == 0 ? 1.0f : 0.9f * x[i - 1]) + 0.3f * normal(random);
  return x;
}

struct Weights {
  std::size_t inputs, groups = 1;  // groups: of a channel
  Tensor exact, rounded;
  std::vector<std::int8_t> values;
  std::vector<RoundedChannel> channels;

  Weights(std::size_t count, std::size_t inputs_of_each, bool four_bits, std::mt19937& random,
          std::size_t groups_of = 1)
      : inputs(inputs_of_each), groups(groups_of) {
    std::normal_distribution<double> normal;
    std::vector<double> weights(count * inputs);
    for (double& w : weights) w = normal(random);
    reset(
        {{DType::f32, Shape{static_cast<std::int64_t>(count * groups), static_cast<std::int64_t>(inputs / groups)}, {}},
         constant_bytes(DType::f32, std::span<const double>(weights))},
        four_bits);
  }
  void reset(Tensor weights, bool four_bits) {
    exact = std::move(weights);
    rounded = quantise_weight(exact, 0, four_bits);
    values.assign(rounded.data.as<std::int8_t>().begin(), rounded.data.as<std::int8_t>().end());
    channels.clear();
    for (std::size_t c = 0; c < values.size() / inputs; ++c)
      channels.push_back({exact.data.as<float>().data() + c * inputs, values.data() + c * inputs,
                          std::span(rounded.type.scales->scale).subspan(c * groups, groups)});
  }

  // Of one channel's sums over the rows: the squared error, or what of it no bias takes back.
  double error(std::size_t c, const std::vector<float>& x, bool centred) const {
    double sum = 0, squares = 0;
    const std::size_t count = x.size() / inputs;
    for (std::size_t r = 0; r < count; ++r) {
      double off = 0;
      for (std::size_t i = 0; i < inputs; ++i)
        off += (channels[c].weights[i] - channels[c].values[i] * channels[c].scales[i / (inputs / groups)]) *
               x[r * inputs + i];
      sum += off;
      squares += off * off;
    }
    return centred ? squares - sum * sum / static_cast<double>(count) : squares;
  }
};

struct Case {
  std::size_t channels, inputs;
  bool four_bits, centred;
  std::size_t groups = 1;
};

class LeastSquaresTest : public testing::TestWithParam<Case> {};

TEST_P(LeastSquaresTest, every_channel_has_less_error) {
  const auto& [count, inputs, four_bits, centred, groups] = GetParam();
  std::mt19937 random(5);
  const std::vector<float> x = alike(rows, inputs, random);
  Weights weights(count, inputs, four_bits, random, groups);
  std::vector<double> before;
  for (std::size_t c = 0; c < count; ++c) before.push_back(weights.error(c, x, centred));
  ThreadPool pool(1);
  LeastSquares({x.data(), rows, inputs, inputs}, centred, pool)
      .round(weights.channels, four_bits ? 7 : 127, four_bits, pool);
  double all_before = 0, all_after = 0;
  for (std::size_t c = 0; c < count; ++c) {
    const double after = weights.error(c, x, centred);
    EXPECT_LE(after, before[c] * (1 + 1e-9));
    all_before += before[c];
    all_after += after;
  }
  EXPECT_LT(all_after, 0.4 * all_before);
  for (const std::int8_t value : weights.values) EXPECT_LE(std::abs(value), four_bits ? 7 : 127);
}

INSTANTIATE_TEST_SUITE_P(layers, LeastSquaresTest,
                         testing::Values(Case{16, 9, true, true}, Case{7, 9, true, false}, Case{40, 70, true, true},
                                         Case{5, 130, true, false}, Case{16, 27, false, true},
                                         Case{3, 100, false, false}, Case{9, 64, true, false, 2},
                                         Case{20, 96, true, false, 12}));

TEST(LeastSquares, does_not_depend_on_threads) {
  std::mt19937 random(6);
  const std::vector<float> x = alike(rows, 150, random);
  Weights one(90, 150, true, random);
  Weights two = one;
  two.reset(one.exact, true);
  ThreadPool alone(1), pair(2);
  LeastSquares({x.data(), rows, 150, 150}, true, alone).round(one.channels, 7, true, alone);
  LeastSquares({x.data(), rows, 150, 150}, true, pair).round(two.channels, 7, true, pair);
  EXPECT_EQ(one.values, two.values);
  EXPECT_EQ(one.rounded.type, two.rounded.type);
}

TEST(LeastSquares, knows_nothing_of_inputs_that_do_not_vary) {
  std::mt19937 random(7);
  Weights weights(4, 12, true, random);
  const std::vector<std::int8_t> nearest = weights.values;
  ThreadPool pool(1);
  const std::vector<float> constant(20 * 12, 3.5f), nothing(20 * 12, 0.0f);
  LeastSquares({constant.data(), 20, 12, 12}, true, pool).round(weights.channels, 7, true, pool);
  LeastSquares({nothing.data(), 20, 12, 12}, false, pool).round(weights.channels, 7, true, pool);
  EXPECT_EQ(weights.values, nearest);
}

TEST(LeastSquares, takes_no_inputs_that_are_not_finite) {
  std::mt19937 random(8);
  Weights weights(4, 12, true, random);
  const std::vector<std::int8_t> nearest = weights.values;
  ThreadPool pool(1);
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> x = alike(20, 12, random);
    x[30] = bad;
    LeastSquares({x.data(), 20, 12, 12}, true, pool).round(weights.channels, 7, true, pool);
    EXPECT_EQ(weights.values, nearest);
  }
}

TEST(LeastSquares, takes_one_row_and_unusual_weights) {
  std::mt19937 random(9);
  const std::vector<float> x = alike(1, 12, random);
  Weights weights(4, 12, true, random);
  std::vector<double> unusual(4 * 12, 0.5);
  for (std::size_t i = 0; i < 12; ++i) unusual[i] = 0;
  unusual[15] = NAN;
  unusual[30] = INFINITY;
  weights.reset({weights.exact.type, constant_bytes(DType::f32, std::span<const double>(unusual))}, true);
  ThreadPool pool(1);
  LeastSquares({x.data(), 1, 12, 12}, false, pool).round(weights.channels, 7, true, pool);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(weights.values[i], 0);
  for (const RoundedChannel& channel : weights.channels) EXPECT_TRUE(std::isfinite(channel.scales[0]));
}

Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok());
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
  EXPECT_TRUE(program.ok());
  return program->run(inputs)->at(0);
}

// The signal-to-noise ratio of a small network with weights of four bits, on other inputs than the samples.
double decibels(Rounding rounding) {
  auto graph = parse(
      "graph @main(%x: 1x3x16x16xf32, %a: 16x3x3x3xf32, %b: 16x1x3x3xf32, %c: 24x16x1x1xf32) -> (%y) {\n"
      "  %1: 1x16x16x16xf32 = aten.conv2d.default(%x, %a, none) {padding=[1, 1]}\n"
      "  %2: 1x16x16x16xf32 = aten.relu.default(%1)\n"
      "  %3: 1x16x8x8xf32 = aten.conv2d.default(%2, %b, none) {stride=[2, 2], padding=[1, 1], groups=16}\n"
      "  %4: 1x16x8x8xf32 = aten.relu.default(%3)\n"
      "  %y: 1x24x8x8xf32 = aten.conv2d.default(%4, %c, none)\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::mt19937 random(10);
  std::normal_distribution<double> normal;
  for (std::size_t i = 1; i < 4; ++i) {
    Value& w = (*graph)[graph->inputs[i]];
    std::vector<double> weights(static_cast<std::size_t>(w.type.shape.elements()));
    for (double& x : weights) x = normal(random);
    w.constant = constant_bytes(DType::f32, std::span<const double>(weights));
  }
  graph->inputs.resize(1);
  const TensorType type = (*graph)[graph->inputs[0]].type;
  std::vector<std::vector<Tensor>> samples, tests;
  for (int i = 0; i < 16; ++i) (i % 2 ? samples : tests).push_back({{type, Bytes::of(alike(48, 16, random))}});
  QuantiseOptions options;
  options.four_bits = true;
  options.rounding = rounding;
  auto quantised = quantise(*graph, samples, options, {});
  EXPECT_TRUE(quantised.ok()) << quantised.error().message;
  insert_boundaries(*quantised, Io::floats);
  double signal = 0, noise = 0;
  for (const auto& inputs : tests) {
    const Tensor expected = run(*graph, inputs), found = run(*quantised, inputs);
    for (std::size_t i = 0; i < expected.data.as<float>().size(); ++i) {
      const double e = expected.data.as<float>()[i], off = e - found.data.as<float>()[i];
      signal += e * e;
      noise += off * off;
    }
  }
  return 10 * std::log10(signal / noise);
}

TEST(LeastSquaresOfPrograms, gain_decibels_with_four_bits) {
  const double nearest = decibels(Rounding::nearest), solved = decibels(Rounding::by_width);
  RecordProperty("nearest", std::to_string(nearest));
  RecordProperty("least_squares", std::to_string(solved));
  EXPECT_GT(solved, nearest + 2);
}

}  // namespace
}  // namespace tosaic::domain
