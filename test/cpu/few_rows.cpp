// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a matrix that is read where it lies, against the interpreter.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

// Few rows, and whole vectors: the second factor is read where it lies, in blocks and vectors of many numbers.
Net few_rows(std::uint32_t seed, std::string& what) {
  const std::int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 12}, depths[] = {16, 64, 80, 192},
                     widths[] = {1, 7, 16, 50, 112, 144};
  Net net(seed);
  const bool turned = seed % 2 == 0;
  const std::int64_t batch = net.integer(1, 3), h = rows[net.integer(0, 7)];
  std::int64_t c = depths[net.integer(0, 3)], w = widths[net.integer(0, 5)];
  if (!turned) std::swap(c, w);
  what = fmt::format("{} x {} x {} x {}, turned {}", batch, h, c, w, turned);
  const ValueId a = net.input(DType::f32, {batch, h, c}, -1, 1), zero = net.zero(DType::f32);
  ValueId b = net.input(DType::f32, turned ? Shape{batch, w, c} : Shape{batch, c, w}, -1, 1);
  if (turned) b = net.node("transpose", {b}, {{"perms", std::vector<std::int64_t>{0, 2, 1}}});
  ValueId v = net.node("matmul", {a, b, zero, zero}, {}, DType::f32);
  if (seed % 3 == 1)
    v = net.node("clamp", {v}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}});
  if (seed % 3 == 2) v = net.node("mul", {v, net.constant(DType::f32, {1, 1, 1}, 0.1, 0.2), net.zero(DType::i8)});
  net.output(v);
  return net;
}

TEST(FewRows, as_interpreted) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    std::string what;
    const Net net = few_rows(seed, what);
    expect_as_interpreted(net, {1e-5, 1e-5}, what, "matmul_f32");
    if (::testing::Test::HasFailure()) return;
  }
}

// However threads share rows and columns, a sum is added up in one order.
TEST(FewRows, are_the_same_on_any_threads) {
  for (const std::int64_t set : instruction_sets()) {
    use(set);
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
      std::string what;
      const Net net = few_rows(seed, what);
      Bytes alone;
      for (const int threads : {1, 2, 3, 7}) {
        auto program = cpu::Program::compile(net.graph, {.threads = threads});
        ASSERT_TRUE(program.ok());
        const auto results = program->run(net.inputs);
        ASSERT_TRUE(results.ok());
        if (threads == 1) alone = results->at(0).data;
        EXPECT_EQ(results->at(0).data, alone) << what << ", " << threads << " threads";
      }
    }
  }
  use(0);
}

// A NaN of the second factor is in all that it meets, also where rows have a zero for it, and passes a clamp.
TEST(FewRows, of_NaN) {
  Net net;
  const ValueId a = net.input(DType::f32, {1, 4, 64}, 0, 0), b = net.input(DType::f32, {1, 64, 32}, -1, 1);
  const ValueId zero = net.zero(DType::f32);
  const ValueId v = net.node("matmul", {a, b, zero, zero}, {}, DType::f32);
  net.output(net.node("clamp", {v}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}}));
  std::vector<double> values(64 * 32, 1.0);
  values[5 * 32 + 3] = std::numeric_limits<double>::quiet_NaN();
  values[63 * 32 + 31] = std::numeric_limits<double>::infinity();
  net.inputs[1].data = constant_bytes(DType::f32, std::span<const double>(values));
  expect_as_interpreted(net, {1e-5, 1e-5}, "NaN", "matmul_f32");
}

}  // namespace
}  // namespace tosaic::test
