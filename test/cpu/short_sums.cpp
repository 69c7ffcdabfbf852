// SPDX-License-Identifier: Apache-2.0
// Products of 16 and 8 bits whose sums are as large as i32, i48 or a stretch of K allows, and larger by one: what the
// kernels know of their weights must be right to the last bit.
#include <fmt/format.h>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t largest = 2147483647;

Attrs window(const Sizes& pad) {
  return {{"pad", pad},
          {"stride", Sizes{1, 1}},
          {"dilation", Sizes{1, 1}},
          {"acc_type", DType::i48},
          {"local_bound", false}};
}
// So that the largest sum of i32 becomes half of the largest i16, and what wraps is seen.
ValueId rescaled(Net& net, ValueId sums) { return net.rescale(sums, DType::i16, 31, 31, true); }

// A convolution of 1x1 over k channels that are all `input`, weights that are all `weight`.
void expect_convolution(std::int64_t k, std::int64_t input, std::int64_t weight, std::int64_t zero_point,
                        std::int64_t bias) {
  Net net;
  const std::int64_t columns = 33;
  const auto x = net.input(DType::i16, {1, 1, 14, k}, static_cast<double>(input), static_cast<double>(input));
  const auto w = net.constant(DType::i8, {columns, 1, 1, k}, static_cast<double>(weight), static_cast<double>(weight));
  // Only one column has the large bias.
  Sizes biases(static_cast<std::size_t>(columns), 0);
  biases[20] = bias;
  net.output(rescaled(
      net, net.node("conv2d",
                    {x, w, net.numbers(DType::i48, biases), net.zero(DType::i16), net.numbers(DType::i8, {zero_point})},
                    window({0, 0, 0, 0}))));
  expect_as_interpreted(net, {}, fmt::format("{} x {} x ({} - {}) + {}", k, input, weight, zero_point, bias),
                        "conv_i16");
}

TEST(ShortSums, Convolution) {
  // 516 weights of 127 and 257 of 255 are the most that fit.
  for (const std::int64_t k : {1, 2, 3, 127, 128, 129, 256, 257, 258, 515, 516, 517, 518, 1033, 4609})
    for (const auto& [weight, zero_point] : {std::pair<std::int64_t, std::int64_t>{127, 0}, {-128, 0}, {127, -128}})
      for (const std::int64_t input : {-32768, 32767}) {
        const std::int64_t sum = k * std::abs(weight - zero_point) * 32768;
        for (const std::int64_t bias : {std::int64_t{0}, largest - sum, largest - sum + 1, sum - largest,
                                        sum - largest - 1, sum - largest - 2, std::int64_t{1} << 40, -largest - 1})
          expect_convolution(k, input, weight, zero_point, bias);
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(ShortSums, ColumnsOfDifferentSize) {
  // The stretches are as short as the largest column wants them, wherever its weights lie.
  for (const std::int64_t k : {600, 2000, 5000})
    for (const std::int64_t at : {std::int64_t{0}, k / 2, k - 520}) {
      Net net(static_cast<std::uint32_t>(k + at));
      const std::int64_t columns = 37;
      std::vector<std::int64_t> weights(static_cast<std::size_t>(columns * k));
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = net.integer(-3, 3);
      for (std::int64_t i = 0; i < 520; ++i) weights[static_cast<std::size_t>(35 * k + at + i)] = -128;
      TensorType type{DType::i8, Shape{columns, 1, 1, k}};
      Bytes data = constant_bytes(DType::i8, std::span<const std::int64_t>(weights));
      const auto w = net.graph.add_value("w", type, std::move(data));
      const auto x = net.input(DType::i16, {1, 1, 5, k}, -32768, -32768);
      net.output(rescaled(net, net.node("conv2d",
                                        {x, w, net.constant(DType::i48, {columns}, -1e9, 1e9), net.zero(DType::i16),
                                         net.zero(DType::i8)},
                                        window({0, 0, 0, 0}))));
      expect_as_interpreted(net, {}, fmt::format("k {} from {}", k, at), "conv_i16");
      if (::testing::Test::HasFailure()) return;
    }
}

// Windows, rows and columns around a tile and a block of them.
TEST(ShortSums, ByTiles) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const std::int64_t side = net.integer(1, 3), sizes[] = {1, 15, 16, 17, 31, 32, 33, 50, 70},
                       channels = net.integer(130 / (side * side), 170), columns = sizes[net.integer(0, 8)];
    const ValueId x =
        net.input(DType::i16, {net.integer(1, 2), net.integer(side, 9), net.integer(8, 15), channels}, -32768, 32767);
    const ValueId w = net.constant(DType::i8, {columns, side, side, channels}, -128, 127);
    const double bias = seed % 4 == 0 ? 1e12 : 1e6;
    ValueId v = net.node(
        "conv2d", {x, w, net.constant(DType::i48, {columns}, -bias, bias), net.zero(DType::i16), net.zero(DType::i8)},
        window({0, side - 1, side - 1, 0}));
    if (seed % 3 > 0) v = net.rescale(v, DType::i16, seed % 4 == 0 ? 36 : 29, 38, true);
    if (seed % 3 == 2)
      v = net.node(
          "clamp", {v},
          {{"min_val", std::int64_t{-9}}, {"max_val", std::int64_t{9999}}, {"nan_mode", std::string("propagate")}});
    net.output(v);
    expect_as_interpreted(net, {}, fmt::format("seed {}", seed), "conv_i16");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ShortSums, Depthwise) {
  for (const std::int64_t channels : {1, 7, 8, 15, 16, 17, 32, 33, 40, 70})
    for (const std::int64_t side : {1, 2, 3, 5, 11})
      for (const auto& [weight, zero_point] : {std::pair<std::int64_t, std::int64_t>{-128, 0}, {-128, 127}})
        for (const std::int64_t input : {-32768, 32767}) {
          const std::int64_t sum = side * side * std::abs(weight - zero_point) * 32768;
          for (const std::int64_t bias : {largest - sum, largest - sum + 1, sum - largest - 2}) {
            Net net;
            const auto x =
                net.input(DType::i16, {1, 12, 13, channels}, static_cast<double>(input), static_cast<double>(input));
            const auto w = net.constant(DType::i8, {side, side, channels, 1}, static_cast<double>(weight),
                                        static_cast<double>(weight));
            Sizes biases(static_cast<std::size_t>(channels), 0);
            biases.back() = bias;
            net.output(rescaled(net, net.node("depthwise_conv2d",
                                              {x, w, net.numbers(DType::i48, biases), net.zero(DType::i16),
                                               net.numbers(DType::i8, {zero_point})},
                                              window({0, side - 1, side - 1, 0}))));
            expect_as_interpreted(net, {},
                                  fmt::format("{} channels, {} x {} of {} x ({} - {}) + {}", channels, side, side,
                                              input, weight, zero_point, bias),
                                  "depthwise_i16");
          }
          if (::testing::Test::HasFailure()) return;
        }
}

// Both operands are i16. 32640 and more have the largest upper part.
TEST(ShortSums, MatmulOfLargest) {
  for (const std::int64_t k : {1, 2, 3, 255, 509, 510, 511, 512, 1020, 1021, 1700})
    for (const std::int64_t a : {-32768, 32767})
      for (const std::int64_t b : {-32768, -32641, -129, -128, 127, 128, 32639, 32640, 32767})
        for (const bool turned : {false, true}) {
          Net net;
          const auto x = net.input(DType::i16, {1, 13, k}, static_cast<double>(a), static_cast<double>(a));
          auto y = net.input(DType::i16, turned ? Shape{1, 17, k} : Shape{1, k, 17}, static_cast<double>(b),
                             static_cast<double>(b));
          if (turned) y = net.node("transpose", {y}, {{"perms", Sizes{0, 2, 1}}});
          net.output(net.node("matmul", {x, y, net.zero(DType::i16), net.zero(DType::i16)}, {}, DType::i48));
          expect_as_interpreted(net, {}, fmt::format("{} x {} x {}, turned {}", k, a, b, turned), "matmul_i16");
          if (::testing::Test::HasFailure()) return;
        }
}

TEST(ShortSums, Matmul) {
  const std::int64_t some[] = {1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 64, 100};
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    Net net(seed);
    const std::int64_t batch = net.integer(1, 5), h = some[net.integer(0, 11)],
                       k = seed % 7 == 1 ? net.integer(500, 530) : some[net.integer(0, 11)],
                       w = some[net.integer(0, 11)];
    const bool turned = seed % 2 == 1;
    const Shape shape = turned ? Shape{batch, w, k} : Shape{batch, k, w};
    const ValueId a = net.input(DType::i16, {batch, h, k}, -32768, 32767);
    ValueId b =
        seed % 4 == 2 ? net.constant(DType::i16, shape, -32768, 32767) : net.input(DType::i16, shape, -32768, 32767);
    if (turned) b = net.node("transpose", {b}, {{"perms", Sizes{0, 2, 1}}});
    ValueId v = net.node("matmul", {a, b, net.zero(DType::i16), net.zero(DType::i16)}, {}, DType::i48);
    if (seed % 5 > 0) v = net.rescale(v, DType::i16, 34, 38, seed % 5 == 1);
    net.output(v);
    expect_as_interpreted(net, {}, fmt::format("seed {}: {} x {} x {} x {}", seed, batch, h, k, w), "matmul_i16");
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tosaic::test
