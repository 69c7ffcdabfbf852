// SPDX-License-Identifier: Apache-2.0
// Products with large weights, which stay where they lie, against the interpreter and against the
// packed weights of small layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

bool uses(const Net& net, std::string_view kernel) {
  auto program = cpu::Program::compile(net.graph, {.threads = 1});
  if (!program.ok()) return false;
  const auto kernels = program->kernels();
  return std::ranges::find(kernels, kernel) != kernels.end();
}

Tolerance of(DType type) {
  if (type == DType::f32) return {1e-4, 1e-4};
  const double unit = type == DType::f16 ? 1.0 / 1024 : 1.0 / 128;
  return {2 * unit, 2 * unit};
}

struct Sizes {
  std::int64_t n, k;
};
// Just large enough: odd both, and whole vectors.
Sizes sizes_of(DType type, std::int64_t rows, bool odd) {
  if (type != DType::f32) return odd ? Sizes{263, 517} : Sizes{128, 512};
  if (rows <= 8) return odd ? Sizes{513, 517} : Sizes{512, 512};
  return odd ? Sizes{1025, 1031} : Sizes{512, 2048};
}

TEST(Unpacked, Layer) {
  const std::int64_t rows[] = {1, 2, 3, 5, 7, 8, 16, 17, 48, 49, 61};
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (std::uint32_t seed = 0; seed < 11; ++seed) {
      Net net(seed);
      const auto [n, k] = sizes_of(type, rows[seed], seed % 2 == 0);
      ValueId y = net.conv2d(net.input(type, {1, 1, rows[seed], k}, -1, 1), net.constant(type, {n, 1, 1, k}, -0.1, 0.1),
                             net.constant(type, {seed % 4 ? n : 1}, -1, 1));
      if (seed % 3 == 1)
        y = net.node("clamp", {y}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}});
      if (seed % 3 == 2) y = net.node("add", {y, net.input(type, net.graph[y].type.shape, -1, 1)});
      net.output(y);
      EXPECT_TRUE(uses(net, "unpacked"));
      expect_as_interpreted(net, of(type),
                            fmt::format("{} rows, {} x {}, {}", rows[seed], n, k, std::string(name_of(type))));
      if (::testing::Test::HasFailure()) return;
    }
}

// As MATMUL has them: [batch][k][n].
TEST(Unpacked, Matmul) {
  const std::int64_t rows[] = {1, 3, 12, 13, 40};
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      Net net(seed);
      const std::int64_t batch = seed % 3 == 2 ? 2 : 1, h = rows[seed / 2];
      const auto [n, k] = sizes_of(type, h, seed % 2 == 0);
      net.output(net.node("matmul",
                          {net.input(type, {batch, h, k}, -1, 1), net.constant(type, {batch, k, n}, -0.1, 0.1),
                           net.zero(type), net.zero(type)},
                          {}, type == DType::f32 ? DType::f32 : type));
      EXPECT_TRUE(uses(net, "unpacked"));
      expect_as_interpreted(net, of(type),
                            fmt::format("{} x {} x {} x {}, {}", batch, h, k, n, std::string(name_of(type))));
      if (::testing::Test::HasFailure()) return;
    }
}

// Rows of 4096 bytes, which are copied: a task's as a whole, in blocks of k, and more than a task takes.
TEST(Unpacked, RowsThatShareCacheLines) {
  for (const std::int64_t rows : {100, 259})
    for (const std::int64_t k : {1024, 2048}) {
      Net net;
      const std::int64_t n = (4 << 20) / (4 * k) + 8;
      net.output(net.conv2d(net.input(DType::f32, {1, 1, rows, k}, -1, 1),
                            net.constant(DType::f32, {n, 1, 1, k}, -0.1, 0.1), net.constant(DType::f32, {n}, -1, 1)));
      expect_as_interpreted(net, {1e-4, 1e-4}, fmt::format("{} rows of {}", rows, k), "unpacked");
    }
}

// Weights that several products read.
TEST(Unpacked, SharedWeights) {
  for (const std::int64_t rows : {1, 3})
    for (const std::int64_t n : {512, 513, 516, 520}) {
      Net net;
      const ValueId w = net.constant(DType::f32, {n, 1, 1, n}, -0.1, 0.1);
      ValueId x = net.input(DType::f32, {1, 1, rows, n}, -1, 1);
      for (int i = 0; i < 3; ++i) x = net.conv2d(x, w, net.constant(DType::f32, {n}, -1, 1));
      net.output(x);
      expect_as_interpreted(net, {1e-3, 1e-4}, fmt::format("{} rows of {}", rows, n), "unpacked");
    }
}

// Of many rows each element is the sum in the order in which packed weights give it, whatever the weights' type: bit
// for bit what layers of a few of the columns give, whose weights are packed f32.
TEST(Unpacked, PanelsGiveWhatPackedWeightsGive) {
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (std::int64_t set : instruction_sets()) {
      use(set);
      Net whole(3);
      const std::int64_t rows = 100, n = 1010, k = 1100, part = 40;
      const ValueId x = whole.input(type, {1, 1, rows, k}, -1, 1);
      const ValueId w = whole.constant(type, {n, 1, 1, k}, -0.1, 0.1), b = whole.constant(type, {n}, -1, 1);
      whole.output(whole.conv2d(x, w, b));
      auto program = cpu::Program::compile(whole.graph, {.threads = 2});
      ASSERT_TRUE(program.ok());
      const auto all = program->run(whole.inputs);
      ASSERT_TRUE(all.ok());
      const auto bytes = storage_size(type);
      for (std::int64_t first : {std::int64_t{0}, std::int64_t{64}, n - part}) {
        Net some;
        const auto piece = [&](ValueId of, Shape shape, std::int64_t row) {
          const TensorType as{type, std::move(shape)};
          return some.graph.add_value(
              fmt::format("p{}", some.graph.values.size()), as,
              whole.graph[of].constant.slice(static_cast<std::size_t>(first * row) * bytes, as.storage_bytes()));
        };
        const ValueId in = some.input(type, {1, 1, rows, k}, -1, 1);
        some.output(some.conv2d(in, piece(w, {part, 1, 1, k}, k), piece(b, {part}, 1)));
        ASSERT_FALSE(uses(some, "unpacked"));
        auto packed = cpu::Program::compile(some.graph, {.threads = 1});
        ASSERT_TRUE(packed.ok());
        const auto columns = packed->run(whole.inputs);
        ASSERT_TRUE(columns.ok());
        for (std::int64_t r = 0; r < rows; ++r)
          ASSERT_EQ(0, std::memcmp((*all)[0].data.data() + static_cast<std::size_t>(r * n + first) * bytes,
                                   (*columns)[0].data.data() + static_cast<std::size_t>(r * part) * bytes,
                                   static_cast<std::size_t>(part) * bytes))
              << std::string(name_of(type)) << ", row " << r << ", columns from " << first;
      }
    }
  use(0);
}

// Constants of a mapped file may lie at any byte.
TEST(Unpacked, WeightsAtAnyByte) {
  for (DType type : {DType::f32, DType::f16, DType::bf16})
    for (std::int64_t rows : {2, 60}) {
      Net net;
      const auto [n, k] = sizes_of(type, rows, true);
      const ValueId w = net.constant(type, {n, 1, 1, k}, -0.1, 0.1);
      const Bytes given = net.graph[w].constant;
      std::vector<std::byte> moved(given.size() + 1);
      std::memcpy(moved.data() + 1, given.data(), given.size());
      net.graph[w].constant = Bytes::of(std::move(moved)).slice(1, given.size());
      net.output(net.conv2d(net.input(type, {1, 1, rows, k}, -1, 1), w, net.constant(type, {n}, -1, 1)));
      EXPECT_TRUE(uses(net, "unpacked"));
      expect_as_interpreted(net, of(type), std::string(name_of(type)));
    }
}

// A NaN among activations makes its row's sums NaN, also where a CLAMP follows; nothing else does.
TEST(Unpacked, NaNPasses) {
  for (std::int64_t rows : {2, 60}) {
    Net net;
    const auto [n, k] = sizes_of(DType::f32, rows, true);
    const ValueId y =
        net.conv2d(net.input(DType::f32, {1, 1, rows, k}, -1, 1), net.constant(DType::f32, {n, 1, 1, k}, -0.1, 0.1),
                   net.constant(DType::f32, {n}, -1, 1));
    net.output(net.node("clamp", {y}, {{"min_val", -0.5}, {"max_val", 0.75}, {"nan_mode", std::string("propagate")}}));
    auto values = net.inputs[0].data.as<float>();
    std::vector<float> with(values.begin(), values.end());
    with[static_cast<std::size_t>(k + 5)] = std::nanf("");
    net.inputs[0].data = Bytes::of(std::move(with));
    for (std::int64_t set : instruction_sets()) {
      use(set);
      auto program = cpu::Program::compile(net.graph, {.threads = 1});
      ASSERT_TRUE(program.ok());
      const auto got = program->run(net.inputs);
      ASSERT_TRUE(got.ok());
      const auto sums = (*got)[0].data.as<float>();
      for (std::int64_t i = 0; i < rows * n; ++i)
        ASSERT_EQ(std::isnan(sums[static_cast<std::size_t>(i)]), i / n == 1)
            << i << ", " << rows << " rows, instruction set " << set;
    }
    use(0);
  }
}

// A table of rows that is a layer's weight, too, is read by both where it lies: nothing of its size is made.
TEST(Unpacked, TiedTable) {
  for (DType type : {DType::f32, DType::bf16}) {
    Net net;
    const auto [n, k] = sizes_of(type, 3, false);
    const ValueId table = net.constant(type, {1, n, k}, -0.1, 0.1);
    const ValueId w = net.graph.add_value("w", TensorType{type, Shape{n, 1, 1, k}}, net.graph[table].constant);
    const ValueId rows = net.node("gather", {table, net.input(DType::i32, {1, 3}, 0, static_cast<int>(n) - 1)});
    net.output(net.conv2d(net.node("reshape", {rows, net.shape({1, 1, 3, k})}), w, net.constant(type, {n}, -1, 1)));
    EXPECT_TRUE(uses(net, "unpacked") && uses(net, "gather"));
    expect_as_interpreted(net, of(type), std::string(name_of(type)));
  }
}

}  // namespace
}  // namespace tosaic::test
