// SPDX-License-Identifier: Apache-2.0
// Products by tiles: sizes around a tile's and a block's, against the interpreter; and large ones by the instructions
// against plain code.
#include "cpu/matrix/tiles.h"

#include <fmt/format.h>

#include <array>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

// A layer of 8 bits, with a zero point in its weight where `weight_zp` is not zero; its sums, or their RESCALE.
Net layer(std::uint32_t seed, std::int64_t rows, std::int64_t k, std::int64_t n, bool rescaled,
          std::int64_t weight_zp) {
  using Sizes = std::vector<std::int64_t>;
  Net net(seed);
  const ValueId x = net.input(DType::i8, {1, 1, rows, k}, -128, 127);
  const ValueId w = net.constant(DType::i8, {n, 1, 1, k}, -128, 127);
  const ValueId b = net.constant(DType::i32, {n}, -5000, 5000);
  ValueId y = net.node("conv2d",
                       {x, w, b, net.numbers(DType::i8, {net.integer(-128, 127)}), net.numbers(DType::i8, {weight_zp})},
                       {{"pad", Sizes{0, 0, 0, 0}},
                        {"stride", Sizes{1, 1}},
                        {"dilation", Sizes{1, 1}},
                        {"acc_type", DType::i32},
                        {"local_bound", false}});
  if (rescaled) y = net.rescale(y, DType::i8, 38, 46, true, 0, -11);
  net.output(y);
  return net;
}

std::vector<Tensor> run(const Net& net, cpu::Tiles tiles, int threads) {
  cpu::use_tiles(tiles);
  auto program = cpu::Program::compile(net.graph, {.threads = threads});
  cpu::use_tiles(cpu::tile_instructions_allowed() ? cpu::Tiles::instructions : cpu::Tiles::none);
  EXPECT_TRUE(program.ok());
  auto got = program->run(net.inputs);
  EXPECT_TRUE(got.ok());
  return std::move(*got);
}

TEST(Tiles, EverySizeAroundABlock) {
  std::uint32_t seed = 0;
  for (const std::int64_t rows : {8, 15, 16, 17, 31, 32, 33, 63, 70})
    for (const std::int64_t k : {48, 51, 63, 64, 65, 130})
      for (const std::int64_t n : {1, 15, 16, 17, 32, 33, 50}) {
        const Net net = layer(seed, rows, k, n, seed % 2 != 0, seed % 3 == 0 ? 5 : 0);
        const auto wanted = interp::run(net.graph, net.inputs);
        ASSERT_TRUE(wanted.ok());
        const auto got = run(net, cpu::Tiles::plain_code, 1);
        ASSERT_EQ(got[0].data, (*wanted)[0].data)
            << fmt::format("{} rows of {}, {} columns, seed {}", rows, k, n, seed);
        ++seed;
      }
}

TEST(Tiles, InstructionsDoWhatTheirPlainCodeDoes) {
  if (!cpu::tile_instructions_allowed())
    GTEST_SKIP() << "this processor has no AMX for 8 bits, or the system does not let programs use it";
  for (const auto& [rows, k, n] : {std::array<std::int64_t, 3>{577, 768, 768},
                                   {196, 4608, 512},
                                   {3136, 576, 64},
                                   {49, 2048, 1000},
                                   {12544, 27, 32},
                                   {300, 197, 197}})
    for (const bool rescaled : {false, true})
      for (const int threads : {1, 2}) {
        const Net net = layer(7, rows, k, n, rescaled, rescaled ? 0 : 3);
        EXPECT_EQ(run(net, cpu::Tiles::instructions, threads)[0].data, run(net, cpu::Tiles::none, threads)[0].data)
            << fmt::format("{} rows of {}, {} columns", rows, k, n);
      }
}

// A convolution of which tiles take the pixels where they lie; with RESCALE, and a sum with another tensor after it.
struct Windows {
  std::int64_t images, height, width, channels, columns;
  std::vector<std::int64_t> kernel{3, 3}, pad{1, 1, 1, 1}, dilation{1, 1};
  std::string text() const {
    return fmt::format("{}x{}x{}x{} to {}, kernel {} pad {} dilation {}", images, height, width, channels, columns,
                       to_string(Shape(kernel)), to_string(Shape(pad)), to_string(Shape(dilation)));
  }
};
Net convolution(const Windows& c, std::uint32_t seed, bool rescaled, bool added) {
  Net net(seed);
  const ValueId x = net.input(DType::i8, {c.images, c.height, c.width, c.channels}, -128, 127),
                w = net.constant(DType::i8, {c.columns, c.kernel[0], c.kernel[1], c.channels}, -128, 127),
                b = net.constant(DType::i32, {c.columns}, -5000, 5000);
  ValueId y =
      net.node("conv2d", {x, w, b, net.numbers(DType::i8, {net.integer(-128, 127)}), net.numbers(DType::i8, {0})},
               {{"pad", c.pad},
                {"stride", std::vector<std::int64_t>{1, 1}},
                {"dilation", c.dilation},
                {"acc_type", DType::i32},
                {"local_bound", false}});
  if (rescaled) y = net.rescale(y, DType::i8, 38, 46, true, 0, -11);
  if (added) {
    const ValueId other = net.input(DType::i8, net.graph[y].type.shape, -128, 127);
    const ValueId sum = net.node(
        "add", {net.rescale(y, DType::i32, 11, 12, false, -11), net.rescale(other, DType::i32, 11, 12, false, 3)});
    y = net.rescale(sum, DType::i8, 49, 50, false, 0, 4);
  }
  net.output(y);
  return net;
}

TEST(Tiles, ConvolutionsByLines) {
  std::uint32_t seed = 0;
  for (const Windows& c : std::initializer_list<Windows>{
           {1, 7, 7, 64, 40},
           {1, 7, 7, 192, 16},
           {2, 14, 14, 128, 33},
           {3, 5, 9, 64, 70},
           {9, 2, 8, 64, 20},
           {1, 1, 40, 64, 17, {1, 5}, {0, 0, 2, 2}},
           {1, 9, 8, 64, 32, {2, 2}, {0, 1, 0, 1}},
           {1, 9, 8, 64, 32, {3, 2}, {3, 0, 2, 0}},
           {1, 12, 16, 64, 50, {3, 3}, {2, 2, 2, 2}, {2, 2}},
           {1, 10, 21, 64, 15, {3, 3}, {0, 0, 0, 0}},
           {1, 60, 60, 128, 8},
       })
    for (const bool rescaled : {true, false}) {
      const bool added = rescaled && seed % 4 == 0;
      const Net net = convolution(c, seed++, rescaled, added);
      const auto wanted = interp::run(net.graph, net.inputs);
      ASSERT_TRUE(wanted.ok()) << wanted.error().message;
      for (const int threads : {1, 2}) {
        cpu::use_tiles(cpu::Tiles::plain_code);
        EXPECT_EQ(cpu::Program::compile(net.graph, {.threads = threads})->kernels().front(), "conv_lines_i8")
            << c.text();
        ASSERT_EQ(run(net, cpu::Tiles::plain_code, threads)[0].data, (*wanted)[0].data) << c.text() << " " << threads;
        if (!cpu::tile_instructions_allowed()) continue;
        ASSERT_EQ(run(net, cpu::Tiles::instructions, threads)[0].data, (*wanted)[0].data) << c.text();
      }
    }
}

}  // namespace
}  // namespace tosaic::test
