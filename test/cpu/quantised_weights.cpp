// SPDX-License-Identifier: Apache-2.0
// Products whose weights are quantised values times scales, by groups, with activations of floats and of quantised
// values, against the interpreter, which computes the floats that the program says.
#include <fmt/format.h>
#include <thread>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

struct Case {
  std::int64_t rows, n, groups, group;
  int bits;
  bool int8, zero, weight_zero;  // of activations; with zero points
  std::string text() const {
    return fmt::format("{} rows, {} x {} groups of {}, {} bits, codes {}, zero points {} {}", rows, n, groups, group,
                       bits, int8, zero, weight_zero);
  }
};

Case random_case(Net& net) {
  const std::int64_t rows[] = {1, 2, 3, 7, 9, 16, 20, 40}, groups[] = {1, 1, 2, 3, 5}, sizes[] = {4, 8, 12, 32, 64};
  return {rows[net.integer(0, 7)],   net.integer(1, 70),     groups[net.integer(0, 4)], sizes[net.integer(0, 4)],
          net.integer(0, 1) ? 4 : 8, net.integer(0, 1) == 1, net.integer(0, 1) == 1,    net.integer(0, 3) == 0};
}

ValueId weight(Net& net, const Case& c) {
  const std::int64_t lowest = c.bits == 4 ? -8 : -128, highest = c.bits == 4 ? 7 : 127;
  ValueId w = net.node("cast", {net.constant(DType::i8, {c.n, c.groups, c.group}, c.weight_zero ? 0 : lowest, highest)},
                       {}, DType::f32);
  if (c.weight_zero) w = net.node("sub", {w, net.constant(DType::f32, {1, 1, 1}, 3, 3)});
  const bool short_scales = net.integer(0, 1) == 1;  // which lie as bfloat16 in memory
  ValueId scale = net.constant(short_scales ? DType::bf16 : DType::f32, {c.n, c.groups, 1}, 0.01, 0.02);
  if (short_scales) scale = net.node("cast", {scale}, {}, DType::f32);
  w = net.integer(0, 1) ? net.node("mul", {w, scale, net.zero(DType::i8)})
                        : net.node("mul", {scale, w, net.zero(DType::i8)});
  return net.node("reshape", {w, net.shape({c.n, 1, 1, c.groups * c.group})});
}

ValueId activations(Net& net, const Case& c) {
  const std::int64_t k = c.groups * c.group;
  if (!c.int8) return net.input(DType::f32, {1, 1, c.rows, k}, -1, 1);
  ValueId x = net.node("cast", {net.input(DType::i8, {c.rows, k}, -128, 127)}, {}, DType::f32);
  if (c.zero) x = net.node("sub", {x, net.input(DType::f32, {c.rows, 1}, -100, 100)});
  x = net.node("mul", {x, net.input(DType::f32, {c.rows, 1}, 0.01, 0.02), net.zero(DType::i8)});
  return net.node("reshape", {x, net.shape({1, 1, c.rows, k})});
}

TEST(QuantisedWeights, Convolution) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Net net(seed);
    Case c = random_case(net);
    if (c.rows == 1 && c.int8 && seed % 2) c.rows = 2;
    const ValueId x = activations(net, c), w = weight(net, c);
    ValueId y = net.conv2d(x, w);
    if (seed % 3 == 1)
      y = net.node("clamp", {y}, {{"min_val", -0.5}, {"max_val", 1.5}, {"nan_mode", std::string("propagate")}});
    if (seed % 3 == 2) y = net.node("mul", {y, net.constant(DType::f32, {1, 1, 1, c.n}, 0.5, 1), net.zero(DType::i8)});
    net.output(y);
    expect_as_interpreted(net, {1e-5, 2e-4}, c.text(), c.int8 ? "coded_i8" : "coded_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// The largest sums that quantised values of 4 and 8 bits make: kernels that add in 16 bits have room for them.
TEST(QuantisedWeights, LargestSums) {
  for (const int code : {-8, 7})
    for (const int activation : {-128, 127}) {
      Net net;
      const std::int64_t n = 20, k = 256;
      ValueId w = net.node("cast", {net.constant(DType::i8, {n, 1, k}, code, code)}, {}, DType::f32);
      w = net.node("mul", {w, net.constant(DType::f32, {n, 1, 1}, 1, 1), net.zero(DType::i8)});
      w = net.node("reshape", {w, net.shape({n, 1, 1, k})});
      const ValueId x = net.node("cast", {net.input(DType::i8, {1, 1, 5, k}, activation, activation)}, {}, DType::f32);
      net.output(net.conv2d(x, w, net.constant(DType::f32, {n}, 0, 0)));
      expect_as_interpreted(net, {0, 0}, fmt::format("{} x {}", code, activation), "coded_i8");
    }
}

// Quantised values as a matrix product has them, whose scales stand after it.
TEST(QuantisedWeights, Matmul) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Net net(seed);
    const std::int64_t k = 4 * net.integer(1, 20), n = net.integer(1, 40), rows = net.integer(1, 20);
    const bool int8 = seed % 2 == 1;
    const ValueId b = net.node("cast", {net.constant(DType::i8, {1, k, n}, -128, 127)}, {}, DType::f32);
    ValueId a = net.input(int8 ? DType::i8 : DType::f32, {1, rows, k}, int8 ? -128 : -1, int8 ? 127 : 1);
    if (int8) a = net.node("cast", {a}, {}, DType::f32);
    net.output(net.node("matmul", {a, b, net.zero(DType::f32), net.zero(DType::f32)}, {}, DType::f32));
    expect_as_interpreted(net, {1e-5, 2e-3}, fmt::format("{} x {} x {}", rows, k, n), int8 ? "coded_i8" : "coded_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// Rows of a table, which may be a layer's weight as well: as the interpreter's, bit for bit.
TEST(QuantisedWeights, Rows) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Net net(seed);
    Case c = random_case(net);
    const std::int64_t k = c.groups * c.group;
    const ValueId w = weight(net, c);
    const ValueId table = net.node("reshape", {w, net.shape({1, c.n, k})});
    const ValueId rows = net.node("gather", {table, net.input(DType::i32, {1, c.rows}, 0, static_cast<int>(c.n) - 1)});
    net.output(rows);
    if (seed % 2 == 0) {
      expect_as_interpreted(net, {0, 0}, c.text(), "coded_rows");
    } else {
      net.output(net.conv2d(net.node("reshape", {rows, net.shape({1, 1, c.rows, k})}), w));
      expect_as_interpreted(net, {1e-5, 2e-4}, c.text());  // of both kernels
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Programs of the same memory have one weight, which the first of their runs packs, whoever runs it.
TEST(QuantisedWeights, ProgramsShareAWeight) {
  Net net(4);
  const Case c{3, 200, 8, 32, 4, false, false, false};
  const ValueId w = weight(net, c);
  net.output(net.conv2d(activations(net, c), w));
  auto alone = cpu::Program::compile(net.graph);
  ASSERT_TRUE(alone.ok());
  const auto wanted = alone->run(net.inputs);
  ASSERT_TRUE(wanted.ok());
  std::vector<cpu::Program> programs;
  std::vector<std::thread> threads;
  std::vector<Bytes> results(4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto program = cpu::Program::compile(net.graph, {.threads = 1, .lasting_weights = true});
    ASSERT_TRUE(program.ok());
    programs.push_back(*std::move(program));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = programs[i].run(net.inputs)->at(0).data; });
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& result : results) EXPECT_EQ(result, wanted->at(0).data);
}

// What no kernel takes as quantised values is computed once, as the floats that it is: no step of a run makes weights.
TEST(QuantisedWeights, OtherWeightsAreFloats) {
  for (const double most : {1.0, 300.0}) {
    Net net;
    const ValueId x = net.input(DType::f32, {1, 1, 3, 8}, -1, 1);
    const ValueId sum = net.node(
        "add", {net.constant(DType::f32, {5, 1, 1, 8}, 0, most), net.constant(DType::f32, {5, 1, 1, 8}, 0, most)});
    net.output(net.conv2d(x, sum));
    expect_as_interpreted(net, {1e-5, 1e-3}, "a sum", "conv_f32");
  }
}

}  // namespace
}  // namespace tosaic::test
