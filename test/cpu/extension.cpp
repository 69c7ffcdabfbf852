// SPDX-License-Identifier: Apache-2.0
// Extension operators by the kernels that executors have for them, against their definitions in TOSA.
#include <fmt/format.h>

#include "cpu/net.h"
#include "ops/definitions/extension.h"

namespace tosaic::test {
namespace {

namespace quantised = extension::quantised;

// A constant of n rows of groups; `packed`: two values in a byte.
struct Weight {
  std::int64_t n, groups, group;
  bool four_bits, packed;
  ValueId values(Net& net) const {
    if (packed) return net.constant(DType::i8, {n, groups * group / 2}, -128, 127);
    return net.constant(DType::i8, {n, groups * group}, four_bits ? -8 : -128, four_bits ? 7 : 127);
  }
  ValueId scales(Net& net) const { return net.constant(DType::f32, {n, groups}, 0.01, 0.02); }
  std::int64_t run() const { return packed ? group : 0; }
};

Weight random_weight(Net& net) {
  const std::int64_t sizes[] = {4, 8, 12, 32, 64};
  const bool four_bits = net.integer(0, 1) == 1;
  return {net.integer(1, 70), net.integer(1, 4), sizes[net.integer(0, 4)], four_bits,
          four_bits && net.integer(0, 1) == 1};
}

ValueId add(Net& net, Operator op, std::vector<ValueId> operands, Attrs attrs, TensorType type) {
  const ValueId v = net.graph.add_value("v" + std::to_string(net.graph.values.size()), std::move(type));
  net.graph.nodes.push_back({op, std::move(operands), std::move(attrs), {v}, nullptr, {}});
  const auto broken = extension::verify_node(tosa::View(net.graph, net.graph.nodes.back()));
  EXPECT_FALSE(broken) << broken->label << ": " << broken->message;
  return v;
}

TEST(Extension, ScaledProduct) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const Weight w = random_weight(net);
    const bool int8 = seed % 2 == 1, scaled = int8 && seed % 3 != 0, zero = scaled && seed % 4 == 1;
    const std::int64_t rows = net.integer(1, 20), k = w.groups * w.group;
    const ValueId x = int8 ? net.input(DType::i8, {rows, k}, -128, 127) : net.input(DType::f32, {rows, k}, -1, 1);
    std::vector<ValueId> operands{x, w.values(net), net.constant(DType::f32, {w.n}, -1, 1), w.scales(net)};
    if (scaled) operands.push_back(net.input(DType::f32, {rows, 1}, 0.01, 0.02));
    if (zero) operands.push_back(net.node("cast", {net.input(DType::i8, {rows, 1}, -100, 100)}, {}, DType::f32));
    net.output(add(net, extension::op::scaled_product, operands,
                   {{quantised::run, w.run()}, {quantised::by_columns, false}}, {DType::f32, {1, 1, rows, w.n}, {}}));
    expect_as_interpreted(net, {1e-5, scaled || !int8 ? 2e-4 : 2e-2},
                          fmt::format("{} rows by {} x {} groups of {}, int8 {}, packed {}", rows, w.n, w.groups,
                                      w.group, int8, w.packed));
    if (::testing::Test::HasFailure()) return;
  }
}

// Scales that are powers of two, and whole numbers of which every sum is one that floats hold.
TEST(Extension, ScaledProductIsExact) {
  for (const bool by_columns : {false, true}) {
    Net net;
    const std::int64_t rows = 7, n = 24, k = 64;
    const Shape shape = by_columns ? Shape{k, n} : Shape{n, k};
    const double scale = by_columns ? 1 : 0.5;
    net.output(add(net, extension::op::scaled_product,
                   {net.input(DType::i8, {rows, k}, -128, 127), net.constant(DType::i8, shape, -128, 127),
                    net.zero(DType::f32), net.constant(DType::f32, {n, 1}, scale, scale)},
                   {{quantised::run, std::int64_t{0}}, {quantised::by_columns, by_columns}},
                   {DType::f32, {1, rows, n}, {}}));
    expect_as_interpreted(net);
  }
}

TEST(Extension, ScaledGather) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    Net net(seed);
    const Weight w = random_weight(net);
    const std::int64_t count = net.integer(1, 9);
    const ValueId which = net.input(DType::i32, {1, count}, 0, static_cast<double>(w.n - 1));
    net.output(add(net, extension::op::scaled_gather, {w.values(net), which, w.scales(net)},
                   {{quantised::run, w.run()}}, {DType::f32, {1, count, w.groups * w.group}, {}}));
    expect_as_interpreted(net, {}, fmt::format("{} of {} rows", count, w.n), "coded_rows");
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tosaic::test
