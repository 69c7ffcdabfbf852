// SPDX-License-Identifier: Apache-2.0
// Centring: channels that lie far from zero are moved to the middle where the floats stay the same.
#include "quantise/channel_offsets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "execute/executable.h"
#include "lower/lower.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

using Samples = std::vector<std::vector<Tensor>>;

std::vector<float> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message;
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
  EXPECT_TRUE(program.ok());
  const Tensor y = program->run(inputs)->at(0);
  return {y.data.as<float>().begin(), y.data.as<float>().end()};
}

double decibels(const std::vector<float>& wanted, const std::vector<float>& found) {
  double signal = 0, noise = 1e-30;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    signal += static_cast<double>(wanted[i]) * wanted[i];
    noise += std::pow(static_cast<double>(wanted[i]) - found[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

class ChannelOffsets : public testing::Test {
 protected:
  Bytes random_floats(std::size_t n, double deviation) {
    std::normal_distribution<double> normal(0, deviation);
    float* to = nullptr;
    Bytes bytes = Bytes::fresh(n, to);
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(normal(random_));
    return bytes;
  }

  // All inputs but %x become constants; those whose name begins with far lie far from zero.
  Graph program(const std::string& text) {
    auto graph = parse(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    while (graph->inputs.size() > 1) {
      Value& v = (*graph)[graph->inputs.back()];
      v.constant = random_floats(static_cast<std::size_t>(v.type.shape.elements()), v.name.starts_with("far") ? 40 : 1);
      graph->inputs.pop_back();
    }
    return *std::move(graph);
  }

  Samples samples(const Graph& graph, std::size_t count = 4) {
    const Value& x = graph[graph.inputs[0]];
    Samples all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back({{x.type, random_floats(static_cast<std::size_t>(x.type.shape.elements()), 1)}});
    return all;
  }

  // The names of the constants that change.
  static std::string changed(const Graph& graph, const Samples& given, QuantiseOptions options = {}) {
    Graph after = graph;
    options.threads = 1;
    EXPECT_TRUE(centre_channels(after, std::vector<char>(graph.values.size()), given, options).ok());
    std::string names;
    for (ValueId v = 0; v < graph.values.size(); ++v)
      if (after[v].constant.data() != graph[v].constant.data()) names += graph[v].name + ' ';
    return names;
  }

  // What is left of other samples' results, in dB: with floats that were moved, in integers before and after that.
  struct Kept {
    double moved, before, after;
  };
  Kept kept(const Graph& graph) {
    const Samples given = samples(graph), others = samples(graph);
    Graph centred = graph;
    QuantiseOptions options;
    options.threads = 1;
    EXPECT_TRUE(centre_channels(centred, std::vector<char>(graph.values.size()), given, options).ok());
    const auto in_integers = [&](bool equalisation) {
      options.equalisation = equalisation;
      auto quantised = quantise(graph, given, options, {});
      EXPECT_TRUE(quantised.ok());
      insert_boundaries(*quantised, Io::floats);
      return decibels(run(graph, others[0]), run(*quantised, others[0]));
    };
    return {decibels(run(graph, others[0]), run(centred, others[0])), in_integers(false), in_integers(true)};
  }

  std::mt19937 random_{7};
};

const std::string head = "graph @main(%x: 1x3x12x12xf32, %w1: 8x3x3x3xf32, %far1: 8xf32, %w2: 4x8x1x1xf32, %b2: 4xf32";
const std::string two_layers = head + R"() -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
})";

TEST_F(ChannelOffsets, are_taken_back_by_the_layer_that_reads_them) {
  const Graph graph = program(two_layers);
  EXPECT_EQ(changed(graph, samples(graph)), "far1 b2 ");
  const Kept kept = this->kept(graph);
  EXPECT_GT(kept.moved, 120);  // floats change in their last digits
  EXPECT_GT(kept.after, kept.before + 6);
}

TEST_F(ChannelOffsets, go_through_sums) {
  const Graph graph = program(head + R"(, %w3: 8x4x1x1xf32, %far3: 8xf32, %w4: 2x8x1x1xf32, %b4: 2xf32) -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %b: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
  %r: 1x4x10x10xf32 = aten.relu.default(%b)
  %c: 1x8x10x10xf32 = aten.conv2d.default(%r, %w3, %far3)
  %s: 1x8x10x10xf32 = aten.add.Tensor(%a, %c)
  %y: 1x2x10x10xf32 = aten.conv2d.default(%s, %w4, %b4)
})");
  EXPECT_EQ(changed(graph, samples(graph)), "far1 b2 far3 b4 ");
  const Kept kept = this->kept(graph);
  EXPECT_GT(kept.moved, 120);
  EXPECT_GT(kept.after, kept.before + 3);
}

TEST_F(ChannelOffsets, of_linear_layers) {
  const Graph graph = program(
      R"(graph @main(%x: 64x6xf32, %w1: 8x6xf32, %far1: 8xf32, %w2: 4x8xf32, %b2: 4xf32) -> (%y) {
  %a: 64x8xf32 = aten.linear.default(%x, %w1, %far1)
  %y: 64x4xf32 = aten.linear.default(%a, %w2, %b2)
})");
  EXPECT_EQ(changed(graph, samples(graph)), "far1 b2 ");
}

// Who reads the channel would see that it was moved.
TEST_F(ChannelOffsets, stay_where_somebody_else_reads_the_channel) {
  const auto none = [&](const std::string& rest) {
    const Graph graph = program(head + rest);
    EXPECT_EQ(changed(graph, samples(graph)), "") << rest;
  };
  none(R"() -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %r: 1x8x10x10xf32 = aten.relu.default(%a)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%r, %w2, %b2)
})");
  none(R"() -> (%a, %y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
})");
  none(R"(, %k: 4x8x3x3xf32) -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%a, %k, %b2) {padding=[1, 1]}
})");
  none(R"(, %k: 4x8x2x2xf32) -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.padding(%a, %k, %b2) {padding="same"}
})");
  none(R"() -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, none)
})");
}

// A bias that two layers have is that of neither.
TEST_F(ChannelOffsets, stay_where_biases_are_shared) {
  const Graph graph = program(head + R"() -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %b: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
  %c: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
  %y: 1x4x10x10xf32 = aten.add.Tensor(%b, %c)
})");
  EXPECT_EQ(changed(graph, samples(graph)), "");
}

// Lowering refuses it.
TEST_F(ChannelOffsets, leave_biases_of_another_size_alone) {
  const Graph graph = program(
      R"(graph @main(%x: 1x3x12x12xf32, %w1: 8x3x3x3xf32, %far1: 4xf32, %w2: 4x8x1x1xf32, %b2: 2xf32) -> (%y) {
  %a: 1x8x10x10xf32 = aten.conv2d.default(%x, %w1, %far1)
  %y: 1x4x10x10xf32 = aten.conv2d.default(%a, %w2, %b2)
})");
  EXPECT_EQ(changed(graph, samples(graph)), "");
}

TEST_F(ChannelOffsets, are_for_integers_of_8_bits_and_ends_that_are_known) {
  const Graph graph = program(two_layers);
  EXPECT_EQ(changed(graph, samples(graph), {.scheme = Scheme::int16x8}), "");
  EXPECT_EQ(changed(graph, samples(graph), {.equalisation = false}), "");
  EXPECT_EQ(changed(graph, samples(graph, 1)), "");  // 100 elements of a channel
}

}  // namespace
}  // namespace tosaic::domain
