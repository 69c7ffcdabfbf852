// SPDX-License-Identifier: Apache-2.0
// Convolutions of random shapes, with every epilogue that kernels fuse, against the interpreter.
#include <fmt/format.h>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

struct Case {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1;
  std::vector<std::int64_t> size, kernel, pad, stride, dilation;
};

// Sizes such that the stride divides what it must.
Case random_case(Net& net, int spatial) {
  Case c;
  const std::int64_t channels[] = {1, 2, 3, 4, 7, 8, 16, 24, 33, 40, 65};
  c.batch = net.integer(1, 2);
  c.in_channels = channels[net.integer(0, 10)];
  c.out_channels = channels[net.integer(0, 10)];
  for (int d = 0; d < spatial; ++d) {
    const std::int64_t kernel = net.integer(0, 2) ? net.integer(1, 4) : 1;
    const std::int64_t stride = net.integer(1, 3), dilation = net.integer(0, 3) ? 1 : net.integer(1, 3);
    const std::int64_t before = net.integer(0, 3), after = net.integer(0, 3),
                       out = net.integer(1, spatial == 3 ? 4 : 9);
    std::int64_t in = (out - 1) * stride + 1 + (kernel - 1) * dilation - before - after;
    c.kernel.push_back(kernel);
    c.stride.push_back(stride);
    c.dilation.push_back(dilation);
    c.pad.insert(c.pad.end(), {before, after});
    while (in < 1) in += stride;
    c.size.push_back(in);
  }
  return c;
}

Shape with_channels(std::int64_t first, const std::vector<std::int64_t>& middle, std::int64_t last) {
  std::vector<std::int64_t> dims{first};
  dims.insert(dims.end(), middle.begin(), middle.end());
  dims.push_back(last);
  return Shape(dims);
}

ValueId convolution(Net& net, const Case& c, DType in, DType weight, DType out, std::int64_t input_zp = 0,
                    std::int64_t weight_zp = 0) {
  const std::string op = c.size.size() == 3 ? "conv3d" : "conv2d";
  const double range = is_float(in) ? 1 : 128, weight_range = weight == DType::i4 ? 8 : range;
  const double low = is_float(in) ? 0 : 1;  // integers: up to one less
  const ValueId x = net.input(in, with_channels(c.batch, c.size, c.in_channels), -range, range - low);
  const ValueId w = net.constant(weight, with_channels(c.out_channels, c.kernel, c.in_channels),
                                 -weight_range + (weight == DType::i4), weight_range - low);
  const ValueId b =
      net.constant(out, {net.integer(0, 3) ? c.out_channels : 1}, is_float(in) ? -1 : -5000, is_float(in) ? 1 : 5000);
  return net.node(op, {x, w, b, net.numbers(in, {input_zp}), net.numbers(weight, {weight_zp})},
                  {{"pad", c.pad},
                   {"stride", c.stride},
                   {"dilation", c.dilation},
                   {"acc_type", is_float(in) ? DType::f32 : DType::i32},
                   {"local_bound", false}});
}

std::string describe(const Case& c, std::uint32_t seed) {
  return fmt::format("seed {}: {}x{}x{} kernel {} pad {} stride {} dilation {} to {} channels", seed, c.batch,
                     to_string(Shape(c.size)), c.in_channels, to_string(Shape(c.kernel)), to_string(Shape(c.pad)),
                     to_string(Shape(c.stride)), to_string(Shape(c.dilation)), c.out_channels);
}

ValueId clamp(Net& net, ValueId x, std::int64_t low, std::int64_t high) {
  return net.node("clamp", {x}, {{"min_val", low}, {"max_val", high}, {"nan_mode", std::string("propagate")}});
}

// One weight for many nodes is packed once; zero points, biases and what a transposed convolution turns are each one's
// own.
template <class F>
void expect_shared_weights(const F& sums) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Net net(seed);
    sums(net);
    expect_as_interpreted(net, {1e-5, 1e-4}, fmt::format("seed {}", seed));
    if (::testing::Test::HasFailure()) return;
    // As graphs that lie in memory have them, beside another program of the same weights.
    auto first = cpu::Program::compile(net.graph, {.lasting_weights = true});
    auto second = cpu::Program::compile(net.graph, {.lasting_weights = true});
    auto alone = cpu::Program::compile(net.graph);
    ASSERT_TRUE(first.ok() && second.ok() && alone.ok());
    const auto wanted = alone->run(net.inputs);
    for (auto* program : {&*first, &*second}) {
      const auto got = program->run(net.inputs);
      for (std::size_t i = 0; i < wanted->size(); ++i) EXPECT_EQ(got->at(i).data, wanted->at(i).data);
    }
  }
}

TEST(Convolution, NodesShareAWeight) {
  using Sizes = std::vector<std::int64_t>;
  for (const auto& [in, out] : {std::pair{DType::i8, DType::i32}, {DType::i16, DType::i48}, {DType::f32, DType::f32}})
    expect_shared_weights([in = in, out = out](Net& net) {
      const std::int64_t n = net.integer(1, 40), k = net.integer(1, 40), side = net.integer(1, 2);
      const DType weight_type = is_float(in) ? in : DType::i8;
      const double most = is_float(in) ? 1 : 127;
      const ValueId w = net.constant(weight_type, Shape{n, side, side, k}, -most, most);
      for (int i = 0; i < 4; ++i) {
        const ValueId x = net.input(in, Shape{1, 5, 5, k}, -most, most);
        const ValueId bias = net.constant(out, Shape{net.integer(0, 1) ? n : 1}, -most, most);
        const ValueId zero = net.numbers(in, {in == DType::i8 ? net.integer(-128, 127) : 0});
        const ValueId weight_zero = net.numbers(weight_type, {in == DType::i8 && i == 2 ? net.integer(-128, 127) : 0});
        Attrs attrs{{"stride", Sizes{1, 1}}, {"acc_type", out}, {"local_bound", false}};
        if (i == 3) {
          attrs.set("out_pad", Sizes{0, 0, 0, 0});
          net.output(net.node("transpose_conv2d", {x, w, bias, zero, weight_zero}, attrs));
        } else {
          attrs.set("pad", Sizes{0, 0, 0, 0});
          attrs.set("dilation", Sizes{1, 1});
          net.output(net.node("conv2d", {x, w, bias, zero, weight_zero}, attrs));
        }
      }
    });
}

TEST(Convolution, I8WithEveryTail) {
  for (std::uint32_t seed = 0; seed < 160; ++seed) {
    Net net(seed);
    const Case c = random_case(net, seed % 8 == 7 ? 3 : 2);
    const bool zero = seed % 5 == 0;
    ValueId v =
        convolution(net, c, DType::i8, seed % 9 == 4 ? DType::i4 : DType::i8, DType::i32,
                    zero ? 0 : net.integer(-128, 127), seed % 6 == 5 && seed % 9 != 4 ? net.integer(-128, 127) : 0);
    const Shape shape = net.graph[v].type.shape;
    switch (seed % 7) {
      case 0: break;  // the sums themselves
      case 1: v = net.rescale(v, DType::i8, 38, 46, true, 0, -11); break;
      case 2: v = clamp(net, net.rescale(v, DType::i8, 40, 44, false, 0, 3), -20, 110); break;
      case 3:
        v = net.node("table",
                     {net.rescale(v, DType::i8, 38, 46, true, 0, 7), net.constant(DType::i8, {256}, -128, 127)});
        break;
      case 4: {  // a residual sum
        const ValueId a = net.rescale(net.rescale(v, DType::i8, 38, 46, true, 0, 7), DType::i32, 11, 12, false, 7);
        const ValueId b = net.rescale(net.input(DType::i8, shape, -128, 127), DType::i32, 11, 12, false, -4);
        v = clamp(net, net.rescale(net.node("add", {a, b}), DType::i8, 49, 50, false, 0, 1), -100, 100);
        break;
      }
      case 5: v = net.rescale(v, DType::i16, 36, 40, true, 0, 0); break;
      case 6:
        v = net.rescale(v, DType::i8, seed % 2 ? 40 : 31, 44, seed % 2 == 0, 0, 3,
                        seed % 2 ? "double_round" : "single_round");
        break;
    }
    net.output(v);
    expect_as_interpreted(net, {}, describe(c, seed), "conv_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Convolution, F32WithEveryTail) {
  for (std::uint32_t seed = 1000; seed < 1120; ++seed) {
    Net net(seed);
    const Case c = random_case(net, seed % 8 == 7 ? 3 : 2);
    ValueId v = convolution(net, c, DType::f32, DType::f32, DType::f32);
    const Shape shape = net.graph[v].type.shape;
    switch (seed % 5) {
      case 0: break;
      case 1:
        v = net.node("clamp", {v}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}});
        break;
      case 2: v = net.node("mul", {v, net.node("sigmoid", {v}), net.zero(DType::i8)}); break;
      case 3: v = net.node("add", {net.input(DType::f32, shape, -1, 1), v}); break;
      case 4:
        v = net.node("clamp", {v}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("ignore")}});
        break;
    }
    net.output(v);
    const bool long_lines = c.size.size() == 2 && net.graph[v].type.shape.size(2) >= 4;
    const bool by_lines = long_lines && c.kernel[0] * c.kernel[1] > 1 && c.dilation[1] == 1 &&
                          (c.out_channels <= 64 || c.kernel[1] * c.in_channels < 64);
    expect_as_interpreted(net, {2e-5, 2e-5}, describe(c, seed), by_lines ? "conv_lines" : "conv_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// Lines of several tasks, padding wider than a window reaches, lines that no window reads, many columns of short runs.
TEST(Convolution, ByLines) {
  const Case cases[] = {
      {2, 3, 130, {40, 45}, {7, 7}, {3, 3, 2, 3}, {2, 2}, {1, 1}},
      {1, 8, 8, {70, 56}, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {1, 16, 24, {30, 33}, {3, 2}, {4, 0, 0, 5}, {1, 3}, {2, 1}},
      {3, 1, 64, {49, 10}, {10, 4}, {4, 5, 1, 1}, {2, 2}, {1, 1}},
      {1, 5, 40, {31, 9}, {1, 5}, {0, 0, 6, 7}, {3, 1}, {1, 1}},
      {1, 70, 41, {9, 20}, {3, 1}, {2, 2, 0, 0}, {1, 1}, {3, 1}},
  };
  std::uint32_t seed = 1200;
  for (const Case& c : cases) {
    Net net(++seed);
    const ValueId v = convolution(net, c, DType::f32, DType::f32, DType::f32);
    net.output(seed % 2 ? v : net.node("mul", {v, net.node("sigmoid", {v}), net.zero(DType::i8)}));
    expect_as_interpreted(net, {2e-5, 2e-5}, describe(c, seed), "conv_lines");
  }
}

// Blocks that begin and end within an output line, lines that no window reads, sums in pieces, and whose last vectors
// are partly used; elements between which zeros stand are in Transposed.
TEST(Convolution, ByLinePatches) {
  const Case cases[] = {
      {1, 86, 70, {14, 13}, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {1, 200, 97, {15, 15}, {3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}},
      {1, 175, 66, {29, 8}, {3, 3}, {2, 2, 2, 2}, {1, 1}, {2, 2}},
      {1, 90, 72, {37, 11}, {4, 2}, {3, 0, 0, 2}, {3, 1}, {1, 2}},
      {1, 65, 80, {22, 33}, {3, 3}, {0, 2, 1, 1}, {2, 1}, {1, 1}},
      {1, 341, 65, {21, 21}, {2, 3}, {1, 0, 1, 1}, {4, 1}, {3, 1}},
      {1, 700, 90, {60, 1}, {3, 1}, {1, 1, 0, 0}, {1, 1}, {1, 1}},
      {1, 1024, 65, {7, 7}, {3, 1}, {1, 1, 0, 0}, {1, 1}, {1, 1}},
  };
  std::uint32_t seed = 1300;
  for (const Case& c : cases) {
    Net net(++seed);
    const ValueId v = convolution(net, c, DType::f32, DType::f32, DType::f32);
    net.output(seed % 2 ? v : net.node("mul", {v, net.node("sigmoid", {v}), net.zero(DType::i8)}));
    expect_as_interpreted(net, {2e-5, 2e-5}, describe(c, seed), "conv_f32");
  }
}

ValueId depthwise(Net& net, const Case& c, std::int64_t multiplier, DType in, DType out, std::int64_t input_zp = 0,
                  std::int64_t weight_zp = 0) {
  const double range = is_float(in) ? 1 : 128, low = is_float(in) ? 0 : 1;
  const ValueId x = net.input(in, with_channels(c.batch, c.size, c.in_channels), -range, range - low);
  // A weight less its zero point fits 8 bits, so that every kernel takes it.
  const double weight_range = weight_zp ? 60 : range;
  const ValueId w =
      net.constant(in, {c.kernel[0], c.kernel[1], c.in_channels, multiplier}, -weight_range, weight_range - low);
  const ValueId b = net.constant(out, {net.integer(0, 3) ? c.in_channels * multiplier : 1}, is_float(in) ? -1 : -5000,
                                 is_float(in) ? 1 : 5000);
  return net.node("depthwise_conv2d", {x, w, b, net.numbers(in, {input_zp}), net.numbers(in, {weight_zp})},
                  {{"pad", c.pad},
                   {"stride", c.stride},
                   {"dilation", c.dilation},
                   {"acc_type", is_float(in) ? DType::f32 : DType::i32},
                   {"local_bound", false}});
}

TEST(Convolution, DepthwiseI8WithEveryTail) {
  for (std::uint32_t seed = 2000; seed < 2160; ++seed) {
    Net net(seed);
    Case c = random_case(net, 2);
    if (seed % 2)
      c.kernel = {3, 3}, c.dilation = {1, 1}, c.stride = {1, 1}, c.pad = {1, 1, 1, 1},
      c.size = {net.integer(1, 9), net.integer(1, 9)};
    const std::int64_t multiplier = seed % 5 == 3 ? net.integer(2, 3) : 1;
    ValueId v = depthwise(net, c, multiplier, DType::i8, DType::i32, net.integer(-128, 127),
                          seed % 6 == 5 ? net.integer(-60, 60) : 0);
    const Shape shape = net.graph[v].type.shape;
    switch (seed % 7) {
      case 0: break;
      case 1: v = net.rescale(v, DType::i8, 36, 43, true, 0, -11); break;
      case 2: v = clamp(net, net.rescale(v, DType::i8, 38, 42, false, 0, 3), -20, 110); break;
      case 3:
        v = net.node("table",
                     {net.rescale(v, DType::i8, 36, 43, true, 0, 7), net.constant(DType::i8, {256}, -128, 127)});
        break;
      case 4: v = clamp(net, net.rescale(v, DType::i8, 36, 43, true, 0, 3), -128, 100); break;
      case 5: v = net.rescale(v, DType::i16, 32, 36, true, 0, 0); break;
      case 6: v = net.node("add", {net.input(DType::i32, shape, -900, 900), v}); break;
    }
    net.output(v);
    expect_as_interpreted(net, {}, describe(c, seed), "depthwise_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

// Square windows: sizes below and above what is computed at a time, lines and columns outside, shifts on both sides of
// the least that is done beside the sums.
TEST(Convolution, DepthwiseI8OfSquareWindows) {
  const std::int64_t channels[] = {1, 5, 16, 19, 64, 70, 300};
  for (std::uint32_t seed = 8000; seed < 8090; ++seed) {
    Net net(seed);
    const std::int64_t side = 3 + seed % 3 * 2, stride = 1 + seed % 2, many = seed % 8 == 0;
    Case c{.batch = 1,
           .in_channels = many ? 300 : channels[net.integer(0, 5)],
           .kernel = {side, side},
           .stride = {net.integer(1, 2), stride},
           .dilation = {net.integer(1, 2), 1}};
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t before = net.integer(0, side - 1), after = net.integer(0, side - 1), out = net.integer(1, 9);
      std::int64_t in =
          ((many && d == 1 ? 40 : out) - 1) * c.stride[d] + 1 + (side - 1) * c.dilation[d] - before - after;
      while (in < 1) in += c.stride[d];
      c.pad.insert(c.pad.end(), {before, after});
      c.size.push_back(in);
    }
    ValueId v = depthwise(net, c, seed % 7 == 3 ? 2 : 1, DType::i8, DType::i32, net.integer(-128, 127),
                          seed % 5 == 0 ? net.integer(-60, 60) : 0);
    v = seed % 9 == 1 ? net.rescale(v, DType::i8, 31, 34, true, 0, 4) : net.rescale(v, DType::i8, 33, 44, true, 0, -11);
    net.output(seed % 4 == 1 ? clamp(net, v, -20, 110) : v);
    expect_as_interpreted(net, {}, describe(c, seed), "depthwise_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Convolution, DepthwiseF32WithEveryTail) {
  for (std::uint32_t seed = 3000; seed < 3100; ++seed) {
    Net net(seed);
    Case c = random_case(net, 2);
    if (seed % 2)
      c.kernel = {3, 3}, c.dilation = {1, 1}, c.stride = {1, 1}, c.pad = {1, 1, 1, 1},
      c.size = {net.integer(1, 9), net.integer(1, 9)};
    if (seed % 7 == 3)
      c.kernel = {5, 5}, c.dilation = {1, 1}, c.stride = {2, 2}, c.pad = {2, 1, 1, 2}, c.size = {10, 8};
    ValueId v = depthwise(net, c, seed % 5 == 3 ? net.integer(2, 3) : 1, DType::f32, DType::f32);
    if (seed % 3 == 1)
      v = net.node("clamp", {v}, {{"min_val", 0.0}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}});
    if (seed % 3 == 2) v = net.node("tanh", {v});
    net.output(v);
    expect_as_interpreted(net, {1e-5, 1e-5}, describe(c, seed), "depthwise_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// Few long rows, which threads divide; with and without padding, a second kernel, a chain.
TEST(Convolution, DepthwiseLongRows) {
  for (std::uint32_t seed = 3500; seed < 3524; ++seed) {
    Net net(seed);
    const bool floats = seed % 2 != 0, padded = seed % 3 == 0;
    const std::int64_t side = padded ? 3 : 1, pad = padded ? 1 : 0;
    Case c{.batch = 1,
           .in_channels = 40,
           .out_channels = 40,
           .size = {net.integer(1, 2), net.integer(700, 800)},
           .kernel = {side, side},
           .pad = {pad, pad, pad, pad},
           .stride = {1, seed % 4 == 0 ? 2 : 1},
           .dilation = {1, 1}};
    if (c.stride[1] == 2) c.size[1] |= 1;  // what the stride divides
    const DType in = floats ? DType::f32 : DType::i8;
    ValueId v = depthwise(net, c, seed % 5 == 0 ? 2 : 1, in, floats ? DType::f32 : DType::i32);
    if (!floats && seed % 4 < 3) v = net.rescale(v, seed % 4 == 0 ? DType::i8 : DType::i16, 36, 43, true);
    if (floats && seed % 4 == 1) v = net.node("tanh", {v});
    net.output(v);
    expect_as_interpreted(net, {1e-5, 1e-5}, describe(c, seed), floats ? "depthwise_f32" : "depthwise_i8");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Convolution, Transposed) {
  for (std::uint32_t seed = 6000; seed < 6060; ++seed) {
    Net net(seed);
    const DType in = std::vector{DType::i8, DType::f32, DType::i16}[seed % 3];
    const DType out = std::vector{DType::i32, DType::f32, DType::i48}[seed % 3],
                weight = in == DType::i16 ? DType::i8 : in;
    const double range = is_float(in) ? 1 : 100;
    std::vector<std::int64_t> kernel, stride, pad;
    for (int d = 0; d < 2; ++d) {
      kernel.push_back(net.integer(1, 4));
      stride.push_back(net.integer(1, 3));
      for (int side = 0; side < 2; ++side) pad.push_back(net.integer(1 - kernel.back(), 2));
    }
    const std::int64_t channels = net.integer(1, 20), outputs = net.integer(1, 40);
    const ValueId x = net.input(in, {net.integer(1, 2), net.integer(3, 7), net.integer(3, 7), channels}, -range, range);
    ValueId v = net.node("transpose_conv2d",
                         {x, net.constant(weight, {outputs, kernel[0], kernel[1], channels}, -range, range),
                          net.constant(out, {outputs}, -range, range),
                          net.numbers(in, {in == DType::i8 ? net.integer(-128, 127) : 0}), net.zero(weight)},
                         {{"out_pad", pad}, {"stride", stride}, {"acc_type", out}, {"local_bound", false}});
    if (in == DType::i8 && seed % 2) v = net.rescale(v, DType::i8, 38, 44, true);
    net.output(v);
    expect_as_interpreted(net, {1e-5, 1e-5}, fmt::format("transposed seed {}", seed));
    if (::testing::Test::HasFailure()) return;
  }
}

// 16-bit activations, 8-bit weights, 48-bit sums.
TEST(Convolution, I16WithEveryTail) {
  for (std::uint32_t seed = 4000; seed < 4140; ++seed) {
    Net net(seed);
    Case c = random_case(net, seed % 8 == 7 ? 3 : 2);
    if (seed % 9 == 1) c.in_channels = 300;  // several stretches of K
    const ValueId x = net.input(DType::i16, with_channels(c.batch, c.size, c.in_channels), -32768, 32767);
    const std::int64_t weight_zp = seed % 4 == 3 ? net.integer(-60, 60) : 0;
    const bool depthwise = seed % 2 && c.size.size() == 2;
    const std::int64_t multiplier = seed % 10 == 1 ? 2 : 1;
    const std::int64_t out = depthwise ? c.in_channels * multiplier : c.out_channels;
    const ValueId w = depthwise
                          ? net.constant(DType::i8, {c.kernel[0], c.kernel[1], c.in_channels, multiplier}, -128, 127)
                          : net.constant(DType::i8, with_channels(c.out_channels, c.kernel, c.in_channels), -128, 127);
    const ValueId b = net.constant(DType::i48, {net.integer(0, 3) ? out : 1}, -1e9, 1e9);
    ValueId v = net.node(depthwise            ? "depthwise_conv2d"
                         : c.size.size() == 3 ? "conv3d"
                                              : "conv2d",
                         {x, w, b, net.zero(DType::i16), net.numbers(DType::i8, {weight_zp})},
                         {{"pad", c.pad},
                          {"stride", c.stride},
                          {"dilation", c.dilation},
                          {"acc_type", DType::i48},
                          {"local_bound", false}});
    if (seed % 3 == 1) v = net.rescale(v, DType::i16, 32, 38, true);
    if (seed % 3 == 2)
      v = net.node("table",
                   {net.rescale(v, DType::i16, 32, 38, false), net.constant(DType::i16, {513}, -16000, 16000)});
    net.output(v);
    expect_as_interpreted(net, {}, describe(c, seed), depthwise ? "depthwise_i16" : "conv_i16");
    if (::testing::Test::HasFailure()) return;
  }
}

// Half-precision floats are summed in f32 and rounded once.
TEST(Convolution, NarrowFloats) {
  for (DType type : {DType::f16, DType::bf16})
    for (std::uint32_t seed = 5000; seed < 5020; ++seed) {
      Net net(seed);
      const Case c = random_case(net, 2);
      ValueId v = seed % 2 ? depthwise(net, c, 1, type, type) : convolution(net, c, type, type, type);
      if (seed % 3 == 1)
        v = net.node("clamp", {v}, {{"min_val", 0.0}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}});
      if (seed % 3 == 2) v = net.node("add", {v, net.input(type, net.graph[v].type.shape, -1, 1)});
      v = net.node("max_pool2d", {v},
                   {{"kernel", std::vector<std::int64_t>{1, 1}},
                    {"stride", std::vector<std::int64_t>{1, 1}},
                    {"pad", std::vector<std::int64_t>{0, 0, 0, 0}},
                    {"nan_mode", std::string("propagate")}});
      net.output(v);
      const double unit = type == DType::f16 ? 1.0 / 1024 : 1.0 / 128;
      expect_as_interpreted(net, {2 * unit, 2 * unit}, describe(c, seed));
      if (::testing::Test::HasFailure()) return;
    }
}

// A value that somebody else reads, or wants to see, stays a value.
TEST(Convolution, SharedAndObservedValuesAreNotFusedAway) {
  Net net;
  const Case c{1, 8, 16, {6, 6}, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}};
  const ValueId sums = convolution(net, c, DType::i8, DType::i8, DType::i32, 3);
  const ValueId a = net.rescale(sums, DType::i8, 40, 42, true), b = net.rescale(a, DType::i32, 10, 11, false);
  net.output(b);
  net.output(sums);
  expect_as_interpreted(net);
  net.graph.outputs = {b};
  expect_as_interpreted(net, {}, "", "conv_i8");
  auto program = cpu::Program::compile(net.graph, {.threads = 1, .observed = {a}});
  ASSERT_TRUE(program.ok());
  int seen = 0;
  const cpu::Observer observer = [&](ValueId v, const TensorView&, ThreadPool&) { seen += v == a; };
  ASSERT_TRUE(program->run(net.inputs, &observer).ok());
  EXPECT_EQ(seen, 1);
}

// Weights that are computed, not constant, are left to the row's own evaluation.
TEST(Convolution, ComputedWeights) {
  Net net;
  const ValueId x = net.input(DType::f32, {1, 5, 5, 3}, -1, 1), w = net.input(DType::f32, {4, 3, 3, 3}, -1, 1);
  const ValueId b = net.constant(DType::f32, {4}, -1, 1), z = net.zero(DType::f32);
  net.output(net.node("conv2d", {x, w, b, z, z},
                      {{"pad", std::vector<std::int64_t>{1, 1, 1, 1}},
                       {"stride", std::vector<std::int64_t>{1, 1}},
                       {"dilation", std::vector<std::int64_t>{1, 1}},
                       {"acc_type", DType::f32},
                       {"local_bound", false}}));
  expect_as_interpreted(net, {1e-5, 1e-5});
}

}  // namespace
}  // namespace tosaic::test
