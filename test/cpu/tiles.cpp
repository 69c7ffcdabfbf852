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

}  // namespace
}  // namespace tosaic::test
