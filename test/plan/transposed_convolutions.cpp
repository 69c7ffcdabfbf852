// SPDX-License-Identifier: Apache-2.0
#include "plan/transposed_convolutions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "interp/interp.h"
#include "ops/definitions/tosa_op.h"
#include "plan/raised.h"

namespace tosaic::plan {
namespace {

Graph split(const std::string& text, const std::vector<std::string>& observed = {}) {
  Graph graph = parsed(text);
  transposed_as_convolutions(graph, values_called(observed, graph));
  drop_dead(graph);  // values that nothing makes any more
  const Status verified = tosa::verify_graph(graph, tosa::Spec::everything());
  EXPECT_TRUE(verified.ok()) << render(verified.error(), false) << print(graph);
  return graph;
}

// An image of 3 x 4 with 2 channels; sums, then a RESCALE with factors of its own for each of 2 channels, and a CLAMP.
std::string integers(int kernel, int stride, const std::string& pad, int rows, int columns) {
  const std::string k = std::to_string(kernel), s = std::to_string(stride);
  const std::string shape = "1x" + std::to_string(rows) + "x" + std::to_string(columns) + "x2x";
  std::string weights;
  for (int i = 0; i < 4 * kernel * kernel; ++i) weights += (i ? ", " : "") + std::to_string(i * 37 % 256 - 128);
  return "graph @g(%x: 1x3x4x2xi8) -> (%y) {\n  %w: 2x" + k + "x" + k + "x2xi8 = constant [" + weights + R"(]
  %b: 2xi32 = constant [100, -200]
  %in: 1xi8 = constant [-3]
  %none: 1xi8 = constant [0]
  %zero: 1xi32 = constant [0]
  %m: 2xi32 = constant [1200000000, 1900000000]
  %r: 2xi8 = constant [38, 39]
  %sums: )" +
         shape + "i32 = tosa.transpose_conv2d(%x, %w, %b, %in, %none) {out_pad=[" + pad + "], stride=[" + s + ", " + s +
         R"(], acc_type=i32, local_bound=false}
  %scaled: )" +
         shape +
         R"(i8 = tosa.rescale(%sums, %m, %r, %zero, %in) {scale32=true, rounding_mode="single_round", per_channel=true, input_unsigned=false, output_unsigned=false}
  %y: )" +
         shape + R"(i8 = tosa.clamp(%scaled) {min_val=-100, max_val=90, nan_mode="propagate"}
})";
}

Tensor image(DType type, const Shape& shape) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < shape.elements(); ++i) elements.push_back(static_cast<double>(i * 53 % 255 - 127));
  return {{type, shape, {}}, constant_bytes(type, std::span<const double>(elements))};
}

std::vector<double> computed(const Graph& graph, const Tensor& input) {
  const auto results = interp::run(graph, std::vector{input});
  EXPECT_TRUE(results.ok()) << (results.ok() ? "" : render(results.error(), false));
  std::vector<double> elements;
  for (std::int64_t i = 0; results.ok() && i < (*results)[0].type.shape.elements(); ++i)
    elements.push_back(
        element_as_double((*results)[0].type.dtype, (*results)[0].data.data(), static_cast<std::size_t>(i)));
  return elements;
}

void expect_equal(const std::string& text) {
  const Tensor input = image(DType::i8, {1, 3, 4, 2});
  const Graph graph = split(text);
  EXPECT_EQ(computed(graph, input), computed(parsed(text), input)) << print(graph);
}

TEST(TransposedConvolutions, AllPhasesAreOneConvolution) {
  const std::string text = integers(2, 2, "0, 0, 0, 0", 6, 8);
  EXPECT_EQ(operators_of(split(text)), "tosa.conv2d tosa.rescale tosa.clamp tosa.reshape tosa.transpose tosa.reshape");
  expect_equal(text);
}

TEST(TransposedConvolutions, WhatLiesOutsideIsCut) {
  const std::string text = integers(4, 2, "-1, -1, -1, -1", 6, 8);
  EXPECT_EQ(operators_of(split(text)),
            "tosa.conv2d tosa.rescale tosa.clamp tosa.reshape tosa.transpose tosa.reshape tosa.slice");
  expect_equal(text);
}

TEST(TransposedConvolutions, PhasesOfFewerTapsAreConvolutionsOfTheirOwn) {
  const std::string text = integers(3, 2, "-1, 0, -1, 0", 6, 8), finished = "tosa.conv2d tosa.rescale tosa.clamp ";
  EXPECT_EQ(operators_of(split(text)), finished + finished + finished + finished +
                                           "tosa.concat tosa.reshape tosa.transpose tosa.reshape tosa.slice");
  expect_equal(text);
}

TEST(TransposedConvolutions, OfAnyKernelStrideAndPadding) {
  for (int kernel = 1; kernel <= 7; ++kernel)
    for (int stride = 1; stride <= 4; ++stride)
      for (int before = 0; before < kernel; ++before)
        for (const int after : {-kernel / 2, 0, 1}) {
          const auto size = [&](int in) { return (in - 1) * stride - before + after + kernel; };
          if (size(3) < 1 || size(4) < 1 || after <= -kernel) continue;
          const std::string pad = std::to_string(-before) + ", " + std::to_string(after);
          SCOPED_TRACE("kernel " + std::to_string(kernel) + ", stride " + std::to_string(stride) + ", " + pad);
          expect_equal(integers(kernel, stride, pad + ", " + pad, size(3), size(4)));
        }
}

TEST(TransposedConvolutions, WhatIsSeenStays) {
  const std::string text = integers(2, 2, "0, 0, 0, 0", 6, 8);
  EXPECT_EQ(operators_of(split(text, {"scaled"})),
            "tosa.conv2d tosa.rescale tosa.reshape tosa.transpose tosa.reshape tosa.clamp");
  EXPECT_EQ(operators_of(split(text, {"sums"})),
            "tosa.conv2d tosa.reshape tosa.transpose tosa.reshape tosa.rescale tosa.clamp");
}

TEST(TransposedConvolutions, OneThatLacksTapsStays) {
  EXPECT_EQ(operators_of(split(integers(1, 2, "0, 1, 0, 1", 6, 8))), "tosa.transpose_conv2d tosa.rescale tosa.clamp");
}

// A weight of 0 in the place of a tap that a phase does not have would make NaN of infinity.
TEST(TransposedConvolutions, InfinitiesReachWhatTheirTapsReach) {
  const std::string text = R"(graph @g(%x: 1x2x2x1xf32) -> (%y) {
  %w: 1x3x3x1xf32 = constant [1, 2, 3, 4, 5, 6, 7, 8, 9]
  %b: 1xf32 = constant [1]
  %none: 1xf32 = constant [0]
  %y: 1x5x5x1xf32 = tosa.transpose_conv2d(%x, %w, %b, %none, %none) {out_pad=[0, 0, 0, 0], stride=[2, 2], acc_type=f32, local_bound=false}
})";
  Tensor input = image(DType::f32, {1, 2, 2, 1});
  input.data = constant_bytes(DType::f32, std::vector{std::numeric_limits<double>::infinity(), 1.0, 2.0, 3.0});
  const std::vector<double> y = computed(split(text), input);
  EXPECT_EQ(y, computed(parsed(text), input));
  EXPECT_EQ(std::ranges::count_if(y, [](double v) { return !std::isfinite(v); }), 9);
}

}  // namespace
}  // namespace tosaic::plan
