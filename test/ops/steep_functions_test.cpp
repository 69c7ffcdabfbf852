// SPDX-License-Identifier: Apache-2.0
// Operands of steep functions get 16 bits where that makes them finer, and nothing else does.
#include <gtest/gtest.h>

#include <random>

#include "quantise/quantise.h"

namespace tosaic::domain {
namespace {

// The width of a value after the program was quantised on four samples, each quieter than the one before.
DType width_of(const std::string& value, const std::string& body, QuantiseOptions options = {}, float size = 1,
               const std::vector<double>& constant_y = {}, float quieter = 3, const std::string& results = "%z") {
  auto graph = parse("graph @main(%x: 1x64xf32, %y: 1x64xf32) -> (" + results + ") {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  if (!constant_y.empty()) {
    (*graph)[graph->inputs[1]].constant = constant_bytes(DType::f32, constant_y);
    graph->inputs.pop_back();
  }
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  std::vector<std::vector<Tensor>> samples(4);
  for (auto& sample : samples) {
    for (ValueId v : graph->inputs) {
      std::vector<double> content(64);
      for (double& c : content) c = size * normal(random);
      sample.push_back({(*graph)[v].type, constant_bytes(DType::f32, std::span<const double>(content))});
    }
    size /= quieter;
  }
  options.threads = 1;
  auto quantised = quantise(*std::move(graph), samples, options, {});
  EXPECT_TRUE(quantised.ok()) << quantised.error().message;
  for (const Value& v : quantised->values)
    if (v.name == value || v.name == value + ".codes") return v.type.dtype;
  ADD_FAILURE() << "no value " << value;
  return DType::boolean;
}

// Of three squares; of two it would be a magnitude.
const std::string root =
    "  %a: 1x64xf32 = aten.mul.Tensor(%x, %x)\n  %b: 1x64xf32 = aten.mul.Tensor(%y, %y)\n"
    "  %s: 1x64xf32 = aten.add.Tensor(%a, %b)\n  %e: 1x64xf32 = aten.add.Tensor(%s, %b)\n"
    "  %m: 1x64xf32 = aten.sqrt.default(%e)\n  %z: 1x64xf32 = aten.relu.default(%m)";

TEST(SteepFunctions, the_root_of_a_sum_of_squares) {
  for (const char* v : {"a", "b", "s"}) EXPECT_EQ(width_of(v, root), DType::i16) << v;
  EXPECT_EQ(width_of("m", root), DType::i8);
}

// One with a sign has twice the steps of the magnitude, which has none.
TEST(SteepFunctions, the_legs_of_a_magnitude) {
  const std::string magnitude =
      "  %f: 1x64xf32 = aten.tanh.default(%x)\n  %g: 1x64xf32 = aten.mul.Scalar(%f) {other=0.25}\n"
      "  %m: 1x64xf32 = aten.hypot.default(%f, %g)\n  %z: 1x64xf32 = aten.relu.default(%m)";
  EXPECT_EQ(width_of("f", magnitude), DType::i16);
  EXPECT_EQ(width_of("g", magnitude), DType::i8) << "its steps are half of the magnitude's";
  EXPECT_EQ(width_of("m", magnitude), DType::i8);
}

// The logarithm of x * x through a filter, %y.
const std::string filtered =
    "  %a: 1x64xf32 = aten.mul.Tensor(%x, %x)\n  %f: 1x1xf32 = aten.linear.default(%a, %y, none)\n"
    "  %s: 1x1xf32 = aten.add.Tensor(%f) {other=1e-6}\n  %m: 1x1xf32 = aten.log.default(%s)\n"
    "  %z: 1x1xf32 = aten.relu.default(%m)";

TEST(SteepFunctions, the_logarithm_of_what_a_filter_adds_up) {
  const std::vector<double> average(64, 1.0 / 64);
  for (const char* v : {"a", "f", "s"}) EXPECT_EQ(width_of(v, filtered, {}, 1, average), DType::i16) << v;
  EXPECT_EQ(width_of("m", filtered, {}, 1, average), DType::i8);
}

TEST(SteepFunctions, what_a_filter_of_both_signs_reads_stays) {
  std::vector<double> difference(64, 0.125);
  difference[5] = -0.125;
  EXPECT_EQ(width_of("a", filtered, {}, 1, difference), DType::i8);
}

// A pool's results have the steps of its input, which are more than those of the sum by itself.
TEST(SteepFunctions, the_logarithm_of_what_a_pool_averages) {
  const std::string pooled =
      "  %b: 1x1x64xf32 = aten.view.default(%x) {size=[1, 1, 64]}\n  %a: 1x1x64xf32 = aten.mul.Tensor(%b, %b)\n"
      "  %f: 1x1x4xf32 = aten.avg_pool1d.default(%a) {kernel_size=[15], stride=[16]}\n"
      "  %s: 1x1x4xf32 = aten.add.Tensor(%f) {other=1e-6}\n  %m: 1x1x4xf32 = aten.log.default(%s)\n"
      "  %z: 1x1x4xf32 = aten.relu.default(%m)";
  EXPECT_EQ(width_of("a", pooled, {}, 1, {}, 1), DType::i16);
}

// Which is computed as log(max(|f|, c)), with 16 bits inside; f has them where products are summed up.
TEST(SteepFunctions, the_logarithm_of_the_square_of_a_layer) {
  const std::string power =
      "  %f: 1x1xf32 = aten.linear.default(%x, %y, none)\n  %a: 1x1xf32 = aten.mul.Tensor(%f, %f)\n"
      "  %s: 1x1xf32 = aten.clamp.default(%a) {min=1e-6}\n  %m: 1x1xf32 = aten.log.default(%s)\n"
      "  %z: 1x1xf32 = aten.relu.default(%m)";
  EXPECT_EQ(width_of("f", power, {}, 1, std::vector<double>(64, 0.125)), DType::i16);
}

// An LSTM's cell, %y and %z: its gates are products, and its largest elements lie where tanh is 1.
TEST(SteepFunctions, a_state_that_comes_back) {
  const std::string cell =
      "  %f: 1x64xf32 = aten.sigmoid.default(%x)\n  %p: 1x64xf32 = aten.mul.Tensor(%y, %f)\n"
      "  %z: 1x64xf32 = aten.add.Tensor(%p, %f)\n  %t: 1x64xf32 = aten.tanh.default(%z)";
  const auto width = [&](const char* value, const QuantiseOptions& options) {
    return width_of(value, cell, options, 30, {}, 1, "%z, %t");
  };
  for (const char* v : {"y", "z"}) EXPECT_EQ(width(v, {}), DType::i16) << v;
  QuantiseOptions integers_outside;
  integers_outside.float_outputs = false;
  for (const char* v : {"y", "z"}) EXPECT_EQ(width(v, integers_outside), DType::i8) << v;
}

TEST(SteepFunctions, may_keep_8_bits) {
  QuantiseOptions as_before;
  as_before.widen_steep = false;
  EXPECT_EQ(width_of("s", root, as_before), DType::i8);
  QuantiseOptions without_int16;
  without_int16.wide_inside = false;
  EXPECT_EQ(width_of("s", root, without_int16), DType::i8);
}

TEST(SteepFunctions, what_is_no_finer_stays) {
  const std::string wave =
      "  %a: 1x64xf32 = aten.mul.Tensor(%x) {other=4.0}\n  %m: 1x64xf32 = aten.sin.default(%a)\n"
      "  %z: 1x64xf32 = aten.relu.default(%m)";
  EXPECT_EQ(width_of("a", wave), DType::i8);
}

TEST(SteepFunctions, gentle_ones_stay) {
  const std::string gentle =
      "  %a: 1x64xf32 = aten.mul.Tensor(%x, %y)\n  %m: 1x64xf32 = aten.tanh.default(%a)\n"
      "  %z: 1x64xf32 = aten.relu.default(%m)";
  EXPECT_EQ(width_of("a", gentle, {}, 0.5), DType::i8);
}

}  // namespace
}  // namespace tosaic::domain
