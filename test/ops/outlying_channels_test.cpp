// SPDX-License-Identifier: Apache-2.0
// Which tensors get 16 bits for channels far larger than the others: those whose reader makes little of them.
#include <gtest/gtest.h>

#include <random>

#include "quantise/observe.h"
#include "quantise/quantise.h"

namespace tosaic::domain {
namespace {

constexpr std::int64_t channels = 16, pixels = 36;

// The width of what a depthwise convolution reads, on four samples. One channel is `larger` than the others, and its
// weights are as much smaller, or not.
DType width_of(double larger, bool suppressed, const QuantiseOptions& options = {}) {
  auto graph = parse(
      "graph @main(%x: 1x16x6x6xf32, %s: 1x16x1x1xf32, %w: 16x1x3x3xf32) -> (%z) {\n"
      "  %a: 1x16x6x6xf32 = aten.mul.Tensor(%x, %s)\n"
      "  %h: 1x16x6x6xf32 = aten.hardswish.default(%a)\n"
      "  %y: 1x16x6x6xf32 = aten.conv2d.default(%h, %w, none) {padding=[1, 1], groups=16}\n"
      "  %z: 1x16x6x6xf32 = aten.sigmoid.default(%y)\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> sizes(channels, 1), weights;
  sizes[5] = larger;
  for (std::int64_t c = 0; c < channels; ++c)
    for (int tap = 0; tap < 9; ++tap)
      weights.push_back(normal(random) / (suppressed ? sizes[static_cast<std::size_t>(c)] : 1));
  (*graph)[graph->inputs[1]].constant = constant_bytes(DType::f32, std::span<const double>(sizes));
  (*graph)[graph->inputs[2]].constant = constant_bytes(DType::f32, std::span<const double>(weights));
  graph->inputs.resize(1);
  std::vector<std::vector<Tensor>> samples(4);
  for (auto& sample : samples) {
    std::vector<double> content(channels * pixels);
    for (double& c : content) c = normal(random);
    sample.push_back({(*graph)[graph->inputs[0]].type, constant_bytes(DType::f32, std::span<const double>(content))});
  }
  auto quantised = quantise(*std::move(graph), samples, options, {});
  EXPECT_TRUE(quantised.ok()) << quantised.error().message;
  for (const Value& v : quantised->values)
    if (v.name == "h") return v.type.dtype;
  ADD_FAILURE() << "no value h";
  return DType::boolean;
}

TEST(OutlyingChannels, what_a_depthwise_convolution_makes_small) { EXPECT_EQ(width_of(200, true), DType::i16); }

TEST(OutlyingChannels, what_stays_as_large_or_is_no_outlier_has_8_bits) {
  EXPECT_EQ(width_of(200, false), DType::i8);
  EXPECT_EQ(width_of(3, true), DType::i8);
}

TEST(OutlyingChannels, may_keep_8_bits) {
  QuantiseOptions as_before, without_int16;
  as_before.widen_steep = false;
  without_int16.wide_inside = false;
  for (const QuantiseOptions& options : {as_before, without_int16}) EXPECT_EQ(width_of(200, true, options), DType::i8);
}

TEST(Histogram, has_the_variance_of_its_elements) {
  ThreadPool pool(1);
  Histogram histogram;
  EXPECT_EQ(histogram.variance(), 0);
  const std::vector<float> one{-1, 3}, other{3, 3};  // mean 2, squares of 9 and thrice 1
  histogram.add(one, range_of(one, pool), pool);
  histogram.add(other, range_of(other, pool), pool);
  EXPECT_NEAR(histogram.variance(), 3, 0.02);
}

}  // namespace
}  // namespace tosaic::domain
