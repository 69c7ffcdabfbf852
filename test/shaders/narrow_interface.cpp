// SPDX-License-Identifier: Apache-2.0
// Inputs and results of programs kept in 16 bits that cross the bus in 16 bits: which they are, and that the host makes
// the same numbers of them.
#include "shaders/narrow_interface.h"

#include <cmath>
#include <limits>

#include "base/narrow_float.h"
#include "shaders/discrete_device.h"
#include "vulkan/compute_halves.h"

namespace tosaic::test {
namespace {

using shaders::Precision;
using vulkan_program::Program;

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

TEST(Halves, AreWidenedAsTheyAre) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const std::size_t begin : {0u, 1u, 5u}) {  // vectors, and what is left
    std::vector<float> wide(halves.size() - begin);
    vulkan::widen(halves.data() + begin, wide.size(), wide.data());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto expected = static_cast<float>(Half::from_bits(halves[begin + i]));
      ASSERT_TRUE(std::isnan(expected)
                      ? std::isnan(wide[i])
                      : std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(expected))
          << begin + i;
    }
  }
}

TEST(Halves, AreTheNearestTiesToEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers{0.0f,      -0.0f, 1.0f,  65504, 65519,   65520,  -65520,  1e30f,          infinity,
                             -infinity, NAN,   6e-8f, 3e-8f, 2.9e-8f, 1e-40f, 6.1e-5f, 1.00048828125f, 1.00146484375f};
  std::mt19937 random(1);
  for (int i = 0; i < 4099; ++i) numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  std::vector<std::uint16_t> halves(numbers.size());
  vulkan::narrow(numbers.data(), numbers.size(), halves.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Half::from_bits(halves[i]))));
    } else {
      EXPECT_EQ(halves[i], Half(numbers[i]).bits) << numbers[i];
    }
  }
}

// Rows of 256 by a matrix of 256 x `columns`.
struct Product {
  std::int64_t columns;
  ValueId x = 0, sum = 0;
  Net net{3};
  Product(std::int64_t rows, std::int64_t of_columns, double most = 1) : columns(of_columns) {
    x = net.input(DType::f32, {1, rows, 256}, -most, most);
    sum = of(x);
  }
  ValueId of(ValueId v) {
    const std::int64_t depth = net.graph[v].type.shape.size(2);
    const ValueId weights = net.constant(DType::f32, {1, depth, columns}, -0.1, 0.1);
    return net.node("matmul", {v, weights, net.zero(DType::f32), net.zero(DType::f32)});
  }
};

// By letters: which inputs, then which outputs are narrow.
std::string narrow_ones(const Net& net, const shaders::KeptWide& wide = {}) {
  const auto program = shaders::compile(net.graph, base, Precision::fp16, nullptr, wide);
  if (!program.ok()) return render(program.error(), false);
  std::string found;
  for (const auto& t : program->inputs) found += t.narrow ? 'n' : 'w';
  found += ' ';
  for (const auto& t : program->outputs) found += t.narrow ? 'n' : 'w';
  return found;
}

TEST(NarrowInterface, LargeOnesThatWouldBeKeptSo) {
  Product large(400, 300);
  large.net.output(large.sum);
  EXPECT_EQ(narrow_ones(large.net), "n n");
  const Program halves = compiled(large.net.graph, base, Precision::fp16), floats = compiled(large.net.graph, base);
  EXPECT_LE(halves.io_bytes, floats.io_bytes / 2 + vulkan_program::alignment);
  EXPECT_TRUE(halves.inputs[0].narrow && halves.outputs[0].narrow);
  EXPECT_EQ(halves.outputs[0].type.dtype, DType::f32) << "of the caller";
  EXPECT_FALSE(floats.inputs[0].narrow || floats.outputs[0].narrow);

  Product small(200, 100);
  small.net.output(small.sum);
  EXPECT_EQ(narrow_ones(small.net), "w w");
}

TEST(NarrowInterface, WhatStaysWide) {
  Product sums(400, 300);  // that layers add to
  sums.net.output(sums.net.node("add", {sums.sum, sums.of(sums.x)}));
  EXPECT_EQ(narrow_ones(sums.net), "n n");
  EXPECT_EQ(narrow_ones(sums.net, {.sums = true}), "n w");

  Product named(400, 300);
  named.net.output(named.sum);
  EXPECT_EQ(narrow_ones(named.net, {.names = {named.net.graph[named.sum].name}}), "n w");

  Product added(400, 300);  // an input that not only products read
  const ValueId y = added.net.input(DType::f32, {1, 400, 300}, -1, 1);
  added.net.output(added.net.node("negate", {added.net.node("mul", {added.sum, y, added.net.numbers(DType::i8, {0})}),
                                             added.net.zero(DType::f32), added.net.zero(DType::f32)}));
  EXPECT_EQ(narrow_ones(added.net), "nw w") << "a result of that input's shape could be the next run's";

  Net moved(4);  // nothing is computed
  moved.output(moved.node("transpose", {moved.input(DType::f32, {400, 300}, -1, 1)},
                          {{"perms", std::vector<std::int64_t>{1, 0}}}));
  EXPECT_EQ(narrow_ones(moved), "w w");
}

TEST(NarrowInterface, ResultsThatMayBeInputs) {
  Product same(400, 256);
  same.net.output(same.sum);
  EXPECT_EQ(narrow_ones(same.net), "n n");
}

// Inputs and results of f16 cross as they are, and `--vulkan-precision fp16` rounds to f16 what is stored alone.
TEST(NarrowInterface, ProgramsOfHalves) {
  Net net(5);
  const ValueId x = net.input(DType::f16, {1, 40, 64}, -1, 1);
  const ValueId sum =
      net.node("matmul", {x, net.constant(DType::f16, {1, 64, 48}, -1, 1), net.zero(DType::f16), net.zero(DType::f16)},
               {}, DType::f16);
  net.output(net.node("tanh", {sum}));
  bool keeps_f16 = false;
  const auto made = shaders::compile(net.graph, base, Precision::fp16, &keeps_f16);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(keeps_f16);
  EXPECT_EQ(made->inputs[0].type.dtype, DType::f16);
  EXPECT_FALSE(made->inputs[0].narrow || made->outputs[0].narrow);
  expect_on_device(net, {2e-3, 2e-3}, "halves", Precision::fp16);
}

using NarrowOnDevice = OnDiscreteDevice;

TEST_F(NarrowOnDevice, CrossAndComeBack) {
  using Copies = std::vector<DiscreteDevice::Copy>;
  Product large(500, 300);  // in parts
  large.net.output(large.sum);
  const std::uint64_t x = 500 * 256 * 2, y = 500 * 300 * 2;
  expect_on_device(large.net, {1e-2, 1e-2}, "here", Precision::fp16);
  for (const bool has_both : {true, false}) {
    open(has_both);
    expect_on_device(large.net, {1e-2, 1e-2}, "on a GPU", Precision::fp16);
    auto model = vulkan::ComputeModel::load(compiled(large.net.graph, base, Precision::fp16));
    ASSERT_TRUE(model.ok()) << render(model.error(), false);
    gpu.copies.clear();
    ASSERT_TRUE(model->measure(true).ok());
    if (has_both)
      EXPECT_EQ(gpu.copies, Copies(4, {both, cached, y / 4}));
    else
      EXPECT_EQ(gpu.copies.front(), (DiscreteDevice::Copy{uncached, device_only, x}));
  }
}

TEST_F(NarrowOnDevice, StayThereAndAreFetched) {
  open(true);
  Product same(400, 256);
  same.net.output(same.sum);
  auto model = vulkan::ComputeModel::load(compiled(same.net.graph, base, Precision::fp16));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  ASSERT_TRUE(model->can_stay(0));
  const void* in[] = {same.net.inputs[0].data.data()};
  std::vector<float> once(400 * 256), twice(once.size()), fetched(once.size());
  void* out[] = {once.data()};
  ASSERT_TRUE(model->run(in, out).ok());
  const void* again[] = {once.data()};
  out[0] = twice.data();
  ASSERT_TRUE(model->run(again, out).ok());
  ASSERT_TRUE(model->run(in, out, {{0}, {1}}).ok());
  ASSERT_TRUE(model->fetch(0, std::as_writable_bytes(std::span(fetched))).ok());
  EXPECT_EQ(fetched, once);
  ASSERT_TRUE(model->run(in, out, {{1}, {1}}).ok());
  ASSERT_TRUE(model->fetch(0, std::as_writable_bytes(std::span(fetched))).ok());
  EXPECT_EQ(fetched, twice);
  // A payload whose result is another one on the device than the input that it would become.
  Program unlike = compiled(same.net.graph, base, Precision::fp16);
  unlike.inputs[0].narrow = false;
  unlike.inputs[0].offset = unlike.io_bytes;
  unlike.io_bytes += 400 * 256 * 4;
  auto other = vulkan::ComputeModel::load(unlike);
  ASSERT_TRUE(other.ok()) << render(other.error(), false);
  EXPECT_FALSE(other->can_stay(0));
}

// What f16 does not hold.
TEST_F(NarrowOnDevice, BecomesInfinite) {
  open(true);
  Product large(400, 300, 60000);
  large.net.output(large.net.node(
      "mul", {large.sum, large.net.constant(DType::f32, {1, 1, 1}, 1e4, 1e4), large.net.numbers(DType::i8, {0})}));
  auto model = vulkan::ComputeModel::load(compiled(large.net.graph, base, Precision::fp16));
  ASSERT_TRUE(model.ok()) << render(model.error(), false);
  const void* in[] = {large.net.inputs[0].data.data()};
  std::vector<float> result(400 * 300);
  void* out[] = {result.data()};
  ASSERT_TRUE(model->run(in, out).ok());
  EXPECT_GT(std::ranges::count_if(result, [](float x) { return std::isinf(x); }), 100);
  EXPECT_EQ(std::ranges::count_if(result, [](float x) { return std::isnan(x); }), 0);
}

}  // namespace
}  // namespace tosaic::test
