// SPDX-License-Identifier: Apache-2.0
// Equalisation: small channels of a tensor become larger where the floats stay the same.
#include "quantise/equalisation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "execute/executable.h"
#include "lower/lower.h"
#include "quantise/channel_sizes.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

std::vector<float> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  auto lowered = lower(graph);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message;
  tidy(lowered->graph);
  auto program = execute::Executable::of_lowering(std::move(lowered->graph), {.threads = 1});
  EXPECT_TRUE(program.ok());
  const Tensor y = program->run(inputs)->at(0);
  return {y.data.as<float>().begin(), y.data.as<float>().end()};
}

class Equalisation : public testing::Test {
 protected:
  Bytes random_floats(std::size_t n) {
    std::normal_distribution<float> normal(0, 1);
    float* to = nullptr;
    Bytes bytes = Bytes::fresh(n, to);
    for (std::size_t i = 0; i < n; ++i) to[i] = normal(random_);
    return bytes;
  }

  // All inputs but %x become constants. In those whose name begins with w, as in their biases (b), each row is an
  // eighth of the row before, and every fourth one is large again.
  Graph program(const std::string& text) {
    auto graph = parse(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    while (graph->inputs.size() > 1) {
      Value& v = (*graph)[graph->inputs.back()];
      const auto n = static_cast<std::size_t>(v.type.shape.elements());
      v.constant = random_floats(n);
      auto* x = reinterpret_cast<float*>(const_cast<std::byte*>(v.constant.data()));
      const std::size_t row = n / static_cast<std::size_t>(v.type.shape.size(0));
      for (std::size_t i = 0; i < n; ++i)
        if (v.name[0] == 'w' || v.name[0] == 'b') x[i] *= static_cast<float>(std::pow(0.125, i / row % 4));
      graph->inputs.pop_back();
    }
    return *std::move(graph);
  }

  std::vector<std::vector<Tensor>> samples(const Graph& graph, std::size_t count = 8) {
    const Value& x = graph[graph.inputs[0]];
    std::vector<std::vector<Tensor>> all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back({{x.type, random_floats(static_cast<std::size_t>(x.type.shape.elements()))}});
    return all;
  }

  static Graph equalised(Graph graph, const std::vector<std::vector<Tensor>>& given, bool* changed = nullptr,
                         QuantiseOptions options = {}) {
    std::vector<Bytes> before;
    for (const Value& v : graph.values) before.push_back(v.constant);
    options.threads = 1;
    const Status done = equalise(graph, std::vector<char>(graph.values.size()), given, options);
    EXPECT_TRUE(done.ok());
    for (ValueId v = 0; changed && v < before.size(); ++v) *changed |= graph[v].constant.data() != before[v].data();
    return graph;
  }

  static double decibels(const std::vector<float>& wanted, const std::vector<float>& found) {
    double signal = 0, noise = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      signal += static_cast<double>(wanted[i]) * wanted[i];
      noise += std::pow(static_cast<double>(wanted[i]) - found[i], 2);
    }
    return 10 * std::log10(signal / noise);
  }

  std::mt19937 random_{7};
};

const char* const two_layers = R"(graph @main(%x: 1x3x8x8xf32, %w1: 8x3x3x3xf32, %b1: 8xf32, %v2: 4x8x3x3xf32) -> (%y) {
  %a: 1x8x8x8xf32 = aten.conv2d.default(%x, %w1, %b1) {padding=[1, 1]}
  %r: 1x8x8x8xf32 = aten.relu.default(%a)
  %y: 1x4x6x6xf32 = aten.conv2d.default(%r, %v2, none)
})";

TEST_F(Equalisation, makes_results_of_integers_finer) {
  const Graph graph = program(two_layers);
  const auto given = samples(graph), others = samples(graph);
  QuantiseOptions options;
  options.threads = 1;
  options.float_outputs = false;
  const auto found = [&](bool equalisation) {
    options.equalisation = equalisation;
    auto quantised = quantise(graph, given, options, {});
    EXPECT_TRUE(quantised.ok());
    insert_boundaries(*quantised, Io::floats);
    double sum = 0;
    for (const auto& other : others) sum += decibels(run(graph, other), run(*quantised, other));
    return sum / static_cast<double>(others.size());
  };
  // %v2 multiplies small channels with numbers as large as the others: here what rounding costs them hardly counts.
  EXPECT_GT(found(true), found(false));
  EXPECT_GT(found(true), 30);
}

TEST_F(Equalisation, needs_eight_samples) {
  const Graph graph = program(two_layers);
  bool changed = false;
  equalised(graph, samples(graph, 7), &changed);
  EXPECT_FALSE(changed);
  equalised(graph, samples(graph, 8), &changed);
  EXPECT_TRUE(changed);
}

TEST_F(Equalisation, keeps_two_of_16_bits_for_what_exceeds_the_samples) {
  const Graph graph = program(R"(graph @main(%x: 1x3x8x8xf32, %w1: 8x3x3x3xf32, %b1: 8xf32, %v2: 8x1x3x3xf32) -> (%y) {
  %a: 1x8x8x8xf32 = aten.conv2d.default(%x, %w1, %b1) {padding=[1, 1]}
  %r: 1x8x8x8xf32 = aten.relu6.default(%a)
  %y: 1x8x6x6xf32 = aten.conv2d.default(%r, %v2, none) {groups=8}
})");
  const auto given = samples(graph, 16);
  const auto of_a_small_one = [&](QuantiseOptions options) {  // the factor of the third channel
    const Graph after = equalised(graph, given, nullptr, options);
    for (ValueId v = 0; v < graph.values.size(); ++v)
      if (graph[v].name == "w1") return after[v].constant.as<float>()[54] / graph[v].constant.as<float>()[54];
    return 0.0f;
  };
  const float of_eight = of_a_small_one({}), of_sixteen = of_a_small_one({.scheme = Scheme::int16x8});
  EXPECT_GE(of_sixteen, 2);
  EXPECT_EQ(of_sixteen, of_eight / 4);
}

// Spectra: each band of frequencies has a size of its own, and so has each sample.
TEST_F(Equalisation, goes_through_magnitudes_and_for_quiet_samples_further) {
  const Graph graph = program(R"(graph @main(%x: 1x3x64xf32, %w1: 8x3x3xf32, %w2: 8x3x3xf32, %v2: 4x8x3xf32) -> (%y) {
  %a: 1x8x62xf32 = aten.conv1d.default(%x, %w1, none)
  %b: 1x8x62xf32 = aten.conv1d.default(%x, %w2, none)
  %r: 1x8x62xf32 = aten.hypot.default(%a, %b)
  %y: 1x4x60xf32 = aten.conv1d.default(%r, %v2, none)
})");
  const auto factor = [&](const std::vector<std::vector<Tensor>>& given, const char* weight) {  // of the third band
    const Graph after = equalised(graph, given);
    EXPECT_GT(decibels(run(graph, given[0]), run(after, given[0])), 120);
    for (ValueId v = 0; v < graph.values.size(); ++v)
      if (graph[v].name == weight) return after[v].constant.as<float>()[18] / graph[v].constant.as<float>()[18];
    return 0.0f;
  };
  auto given = samples(graph, 16);
  const float of_equals = factor(given, "w1");
  EXPECT_GE(of_equals, 2);
  EXPECT_EQ(of_equals, factor(given, "w2"));
  for (std::size_t i = 0; i < given.size(); i += 2) {  // every second is 40 dB quieter
    auto* x = reinterpret_cast<float*>(const_cast<std::byte*>(given[i][0].data.data()));
    for (std::int64_t k = 0; k < given[i][0].type.shape.elements(); ++k) x[k] *= 0.01f;
  }
  EXPECT_GT(factor(given, "w1"), of_equals);
}

// Of a program that somebody else quantises.
TEST_F(Equalisation, changes_the_parameters_that_it_may_and_says_them) {
  const Graph graph = program(two_layers);
  QuantiseOptions options;
  const auto found = equalised_constants(graph, samples(graph), options, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->size(), 3u);
  EXPECT_TRUE(found->contains("w1") && found->contains("b1") && found->contains("v2"));
  for (const char* other : {"w1", "b1", "v2"}) {
    options.may_equalise = [&](const Value& parameter) { return parameter.name != other; };
    EXPECT_TRUE(equalised_constants(graph, samples(graph), options, {})->empty()) << other;
  }
}

// Nets that widen a skip by zeros: nothing but the layer beside it makes those channels.
TEST_F(Equalisation, takes_channels_of_zeros_as_any_size) {
  const Graph graph =
      program(R"(graph @main(%x: 1x3x8x8xf32, %v1: 8x3x3x3xf32, %w1: 16x3x3x3xf32, %v2: 4x16x3x3xf32) -> (%y) {
  %a: 1x8x8x8xf32 = aten.conv2d.default(%x, %v1, none) {padding=[1, 1]}
  %p: 1x16x8x8xf32 = aten.constant_pad_nd.default(%a) {pad=[0, 0, 0, 0, 0, 8], value=0.0}
  %q: 1x16x8x8xf32 = aten.conv2d.default(%x, %w1, none) {padding=[1, 1]}
  %s: 1x16x8x8xf32 = aten.add.Tensor(%p, %q)
  %y: 1x4x6x6xf32 = aten.conv2d.default(%s, %v2, none)
})");
  const auto given = samples(graph);
  const Graph after = equalised(graph, given);
  std::size_t larger = 0;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    for (std::size_t i = 8 * 27; graph[v].name == "w1" && i < graph[v].constant.as<float>().size(); i += 27)
      larger += after[v].constant.as<float>()[i] != graph[v].constant.as<float>()[i];
  EXPECT_EQ(larger, 6u);  // of 8, two are large already
  EXPECT_GT(decibels(run(graph, given[0]), run(after, given[0])), 120);
}

// Of the indices, which nobody reads here, the lowering says nothing.
TEST_F(Equalisation, goes_through_a_pool_whose_indices_have_no_form) {
  const Graph graph = program(R"(graph @main(%x: 1x3x8x8xf32, %w1: 8x3x3x3xf32, %b1: 8xf32, %v2: 4x8x1x1xf32) -> (%y) {
  %a: 1x8x8x8xf32 = aten.conv2d.default(%x, %w1, %b1) {padding=[1, 1]}
  %r: 1x8x2x2xf32, %i: 1x8x2x2xi64 = aten.adaptive_max_pool2d.default(%a) {output_size=[2, 2]}
  %y: 1x4x2x2xf32 = aten.conv2d.default(%r, %v2, none)
})");
  bool changed = false;
  const auto given = samples(graph);
  const Graph after = equalised(graph, given, &changed);
  EXPECT_TRUE(changed);
  EXPECT_GT(decibels(run(graph, given[0]), run(after, given[0])), 100);
}

TEST(ChannelSizes, are_the_same_wherever_channels_stand) {
  const std::vector<float> last{1, -2, 3, 4, 5, -6}, first{1, 3, 5, -2, 4, -6};  // [3, 2] and [2, 3]
  for (const Placed& x : {Placed{last.data(), {{0, 2, 4}, {0, 1}}}, Placed{first.data(), {{0, 1, 2}, {0, 3}}}}) {
    ChannelSizes sizes;
    sizes.see(x, 1, ThreadPool::shared(1));
    EXPECT_TRUE(sizes.known());
    EXPECT_EQ(sizes.lowest(), -6);
    EXPECT_EQ(sizes.highest(), 5);
    EXPECT_DOUBLE_EQ(sizes.relative_square(0, 0), 35 / 45.5);
    EXPECT_DOUBLE_EQ(sizes.relative_one(0), 6 / 91.0);
  }
}

TEST(ChannelSizes, count_quiet_samples_as_much_as_loud_ones) {
  const std::vector<float> loud{300, 100}, quiet{1, 3};
  ChannelSizes sizes;
  for (const auto* sample : {&loud, &quiet}) sizes.see({sample->data(), {{0}, {0, 1}}}, 1, ThreadPool::shared(1));
  EXPECT_DOUBLE_EQ(sizes.relative_square(0, 0), (1.8 + 0.2) / 2);
  EXPECT_LT(sizes.relative_square(1, 100), 0.2) << "of mean squares the floor is no quieter";
}

TEST_F(Equalisation, leaves_room_where_one_sample_is_far_from_the_others) {
  const Graph graph = program(two_layers);
  auto given = samples(graph);
  for (std::size_t s = 0; s + 1 < given.size(); ++s) {  // all but the last are a thousandth of it
    auto* x = reinterpret_cast<float*>(const_cast<std::byte*>(given[s][0].data.data()));
    for (std::size_t i = 0; i < given[s][0].data.as<float>().size(); ++i) x[i] /= 1000;
  }
  Graph without_bias = graph;
  without_bias.nodes[0].inputs[2] = no_value;
  bool changed = false;
  equalised(without_bias, given, &changed);
  EXPECT_FALSE(changed);
}

// Programs from %x to %y, between a layer that makes channels and one that reads them.
struct Between {
  const char *name, *text;
  bool equalises, exact = true;
};
std::ostream& operator<<(std::ostream& to, const Between& between) { return to << between.name; }

class EqualisationBetween : public Equalisation, public testing::WithParamInterface<Between> {};

TEST_P(EqualisationBetween, keeps_the_floats) {
  const Graph graph = program(GetParam().text);
  const auto given = samples(graph);
  bool changed = false;
  const Graph after = equalised(graph, given, &changed);
  EXPECT_EQ(changed, GetParam().equalises);
  for (const auto& sample : given) {
    const std::vector<float> wanted = run(graph, sample), found = run(after, sample);
    if (GetParam().exact)
      EXPECT_EQ(wanted, found);
    else
      EXPECT_GT(decibels(wanted, found), 120);
  }
}

#define LAYER "graph @main(%x: 1x3x8x8xf32, %w1: 8x3x3x3xf32, %b1: 8xf32"
#define FIRST "  %a: 1x8x8x8xf32 = aten.conv2d.default(%x, %w1, %b1) {padding=[1, 1]}\n"
#define LAST(x) "  %y: 1x4x6x6xf32 = aten.conv2d.default(%" x ", %v2, none)\n}"

INSTANTIATE_TEST_SUITE_P(
    , EqualisationBetween,
    testing::Values(
        Between{"nothing", LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST LAST("a"), true},
        Between{"clamp",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %r: 1x8x8x8xf32 = aten.hardtanh.default(%a) {min_val=0.0, max_val=6.0}\n" LAST("r"),
                true},
        Between{"prelu",
                LAYER ", %p: 8xf32, %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %r: 1x8x8x8xf32 = aten.prelu.default(%a, %p)\n" LAST("r"),
                true},
        Between{"depthwise",
                LAYER ", %v3: 8x1x3x3xf32, %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %d: 1x8x8x8xf32 = aten.conv2d.default(%a, %v3, none) {padding=[1, 1], groups=8}\n"
                      "  %r: 1x8x8x8xf32 = aten.relu.default(%d)\n" LAST("r"),
                true},
        Between{"transposed_convolution",
                LAYER ", %v3: 8x4x2x2xf32) -> (%y) {\n" FIRST
                      "  %y: 1x4x9x9xf32 = aten.convolution.default(%a, %v3, none) {stride=[1, 1], padding=[0, 0], "
                      "dilation=[1, 1], transposed=true, output_padding=[0, 0], groups=1}\n}",
                true},
        Between{"groups",
                LAYER ", %v2: 4x4x3x3xf32) -> (%y) {\n" FIRST
                      "  %y: 1x4x6x6xf32 = aten.conv2d.default(%a, %v2, none) {groups=2}\n}",
                true},
        Between{"pools_and_a_linear_layer",
                LAYER ", %v2: 5x32xf32) -> (%y) {\n" FIRST
                      "  %m: 1x8x4x4xf32 = aten.max_pool2d.default(%a) {kernel_size=[2, 2], stride=[2, 2]}\n"
                      "  %v: 1x8x2x2xf32 = aten.avg_pool2d.default(%m) {kernel_size=[2, 2], stride=[2, 2]}\n"
                      "  %f: 1x32xf32 = aten.view.default(%v) {size=[1, 32]}\n"
                      "  %y: 1x5xf32 = aten.linear.default(%f, %v2, none)\n}",
                true},
        Between{"mean_and_a_linear_layer",
                LAYER ", %v2: 5x8xf32) -> (%y) {\n" FIRST "  %m: 1x8xf32 = aten.mean.dim(%a) {dim=[2, 3]}\n"
                      "  %y: 1x5xf32 = aten.linear.default(%m, %v2, none)\n}",
                true},
        Between{"permute",
                LAYER ", %v2: 5x8xf32) -> (%y) {\n" FIRST
                      "  %p: 1x8x8x8xf32 = aten.permute.default(%a) {dims=[0, 3, 2, 1]}\n"
                      "  %y: 1x8x8x5xf32 = aten.linear.default(%p, %v2, none)\n}",
                true},
        Between{"a_slice_of_the_channels",
                LAYER ", %v2: 4x6x3x3xf32) -> (%y) {\n" FIRST
                      "  %s: 1x6x8x8xf32 = aten.slice.Tensor(%a) {dim=1, start=1, end=7}\n" LAST("s"),
                true},
        Between{"zeros_around",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %p: 1x8x10x8xf32 = aten.constant_pad_nd.default(%a) {pad=[0, 0, 1, 1], value=0.0}\n"
                      "  %y: 1x4x8x6xf32 = aten.conv2d.default(%p, %v2, none)\n}",
                true},
        Between{"ones_around",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %p: 1x8x10x8xf32 = aten.constant_pad_nd.default(%a) {pad=[0, 0, 1, 1], value=1.0}\n"
                      "  %y: 1x4x8x6xf32 = aten.conv2d.default(%p, %v2, none)\n}",
                false},
        Between{"a_sum_of_two_layers",
                LAYER ", %w3: 8x3x1x1xf32, %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %c: 1x8x8x8xf32 = aten.conv2d.default(%x, %w3, none)\n"
                      "  %s: 1x8x8x8xf32 = aten.add.Tensor(%a, %c)\n" LAST("s"),
                true},
        Between{"a_sum_with_a_constant",
                LAYER ", %c: 1x8x1x1xf32, %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %s: 1x8x8x8xf32 = aten.add.Tensor(%a, %c)\n" LAST("s"),
                false},
        Between{"a_gate",
                LAYER ", %v3: 8x3x1x1xf32, %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %c: 1x8x8x8xf32 = aten.conv2d.default(%x, %v3, none)\n"
                      "  %g: 1x8x8x8xf32 = aten.sigmoid.default(%c)\n"
                      "  %s: 1x8x8x8xf32 = aten.mul.Tensor(%a, %g)\n" LAST("s"),
                true},
        Between{"a_magnitude",
                LAYER ", %v2: 4x4x3x3xf32) -> (%y) {\n" FIRST
                      "  %p: 1x4x8x8xf32 = aten.slice.Tensor(%a) {dim=1, start=0, end=4}\n"
                      "  %q: 1x4x8x8xf32 = aten.slice.Tensor(%a) {dim=1, start=4, end=8}\n"
                      "  %s: 1x4x8x8xf32 = aten.mul.Tensor(%p, %p)\n"
                      "  %t: 1x4x8x8xf32 = aten.mul.Tensor(%q, %q)\n"
                      "  %u: 1x4x8x8xf32 = aten.add.Tensor(%s, %t)\n"
                      "  %m: 1x4x8x8xf32 = aten.sqrt.default(%u)\n" LAST("m"),
                true, false},
        Between{"concatenated",
                LAYER ", %v3: 8x3x1x1xf32, %v2: 4x16x3x3xf32) -> (%y) {\n" FIRST
                      "  %c: 1x8x8x8xf32 = aten.conv2d.default(%x, %v3, none)\n"
                      "  %s: 1x16x8x8xf32 = aten.cat.default(%a, %c) {dim=1}\n" LAST("s"),
                true},
        Between{"a_sigmoid",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %r: 1x8x8x8xf32 = aten.sigmoid.default(%a)\n" LAST("r"),
                false},
        Between{"a_softmax_over_channels",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y) {\n" FIRST
                      "  %r: 1x1x8x8xf32 = aten.amax.default(%a) {dim=[1], keepdim=true}\n"
                      "  %s: 1x8x8x8xf32 = aten.sub.Tensor(%a, %r)\n" LAST("s"),
                false},
        Between{"split_channels",
                LAYER ", %v2: 4x8xf32) -> (%y) {\n" FIRST
                      "  %s: 1x2x4x64xf32 = aten.view.default(%a) {size=[1, 2, 4, 64]}\n"
                      "  %t: 1x64x2x4xf32 = aten.permute.default(%s) {dims=[0, 3, 1, 2]}\n"
                      "  %u: 1x64x8xf32 = aten.view.default(%t) {size=[1, 64, 8]}\n"
                      "  %y: 1x64x4xf32 = aten.linear.default(%u, %v2, none)\n}",
                false},
        Between{"an_output", LAYER ", %v2: 4x8x3x3xf32) -> (%y, %a) {\n" FIRST LAST("a"), false},
        Between{"a_weight_of_two",
                LAYER ", %v2: 4x8x3x3xf32) -> (%y, %z) {\n" FIRST "  %r: 1x8x8x8xf32 = aten.sigmoid.default(%a)\n"
                      "  %z: 1x4x6x6xf32 = aten.conv2d.default(%r, %v2, none)\n" LAST("a"),
                false}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace tosaic::domain
