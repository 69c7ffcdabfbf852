// SPDX-License-Identifier: Apache-2.0
// A slice that is a run of a tensor's bytes is read where it lies, what a concatenation joins is computed there:
// neither is a dispatch.
#include "shaders/half_precision.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

using vulkan_program::TierId;
constexpr TierId base[]{TierId::base};

class Parts : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
  static ValueId slice(Net& net, ValueId v, const std::vector<std::int64_t>& start,
                       const std::vector<std::int64_t>& size) {
    return net.node("slice", {v, net.shape(start), net.shape(size)});
  }
  // Something that no reader looks through.
  static ValueId stored(Net& net, ValueId v) { return net.node("reduce_sum", {v}, {{"axis", std::int64_t{0}}}); }
  static void expect(const Net& net, std::size_t dispatches) {
    EXPECT_EQ(compiled(net.graph, base).tiers.at(0).dispatches.size(), dispatches);
    expect_on_device(net, {2e-5, 2e-5});
  }
};

TEST_F(Parts, OfAStoredTensor) {
  for (const std::int64_t first : {1, 2, 3}) {  // rows of 64 floats are 256 bytes
    Net net;
    const ValueId rows = stored(net, net.input(DType::f32, {2, 5, 64}, -3, 3));
    const ValueId part = slice(net, rows, {0, first, 0}, {1, 2, 64});
    net.output(net.node("reduce_sum", {part}, {{"axis", std::int64_t{2}}}));
    expect(net, 2);
  }
}

TEST_F(Parts, WhereTheyAreJoined) {
  Net net;
  std::vector<ValueId> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(stored(net, net.input(DType::f32, {3, 1, 128}, -3, 3)));
  const ValueId all = net.node("concat", parts, {{"axis", std::int64_t{1}}});
  net.output(net.node("reduce_sum", {all}, {{"axis", std::int64_t{1}}}));
  net.output(net.node("reduce_sum", {parts[1]}, {{"axis", std::int64_t{2}}}));
  expect(net, 5);
}

// What the others lie in decides where they lie: those are copied.
TEST_F(Parts, ThatCannotLieThere) {
  const auto copies = [](const char* what, const auto& make, std::size_t dispatches) {
    SCOPED_TRACE(what);
    Net net;
    make(net);
    expect(net, dispatches);
  };
  copies(
      "no multiple of 256 bytes",
      [](Net& net) {
        const ValueId rows = stored(net, net.input(DType::f32, {2, 5, 24}, -3, 3));
        net.output(net.node("reduce_sum", {slice(net, rows, {0, 1, 0}, {1, 3, 24})}, {{"axis", std::int64_t{2}}}));
      },
      3);
  copies(
      "no run of bytes",
      [](Net& net) {
        const ValueId rows = stored(net, net.input(DType::f32, {2, 5, 128}, -3, 3));
        net.output(net.node("reduce_sum", {slice(net, rows, {0, 0, 64}, {1, 5, 64})}, {{"axis", std::int64_t{1}}}));
      },
      3);
  copies(
      "twice the same",
      [](Net& net) {
        const ValueId row = stored(net, net.input(DType::f32, {2, 1, 64}, -3, 3));
        net.output(net.node("reduce_sum", {net.node("concat", {row, row}, {{"axis", std::int64_t{1}}})},
                            {{"axis", std::int64_t{1}}}));
      },
      4);
  copies(
      "in two results",
      [](Net& net) {
        const ValueId a = stored(net, net.input(DType::f32, {2, 1, 64}, -3, 3)),
                      b = stored(net, net.input(DType::f32, {3, 1, 64}, -3, 3));
        for (const auto& two : {std::vector{a, b}, std::vector{b, a}})
          net.output(net.node("reduce_sum", {net.node("concat", two, {{"axis", std::int64_t{1}}})},
                              {{"axis", std::int64_t{1}}}));
      },
      6);
  copies(
      "a part of something joined",
      [](Net& net) {
        const ValueId rows = stored(net, net.input(DType::f32, {2, 4, 64}, -3, 3)),
                      other = stored(net, net.input(DType::f32, {2, 1, 64}, -3, 3));
        const ValueId part = slice(net, rows, {0, 1, 0}, {1, 2, 64});
        net.output(net.node("reduce_sum", {net.node("concat", {other, part}, {{"axis", std::int64_t{1}}})},
                            {{"axis", std::int64_t{1}}}));
      },
      4);
  copies(
      "an input",
      [](Net& net) {
        const ValueId x = net.input(DType::f32, {1, 4, 64}, -3, 3);
        net.output(net.node("reduce_sum", {slice(net, x, {0, 1, 0}, {1, 2, 64})}, {{"axis", std::int64_t{2}}}));
      },
      2);
}

// A recurrence: each step reads a part of what was computed for all, and its result is a part of what is returned.
TEST_F(Parts, OfARecurrence) {
  Net net(3);
  const ValueId all = stored(net, net.input(DType::f32, {2, 4, 64}, -1, 1));
  ValueId state = net.input(DType::f32, {1, 1, 64}, -1, 1);
  std::vector<ValueId> steps;
  for (std::int64_t i = 0; i < 4; ++i) {
    const ValueId now = slice(net, all, {0, i, 0}, {1, 1, 64});
    state = net.node("tanh", {net.node("add", {now, state})});
    steps.push_back(state);
  }
  const ValueId joined = net.node("concat", steps, {{"axis", std::int64_t{1}}});
  net.output(net.node("reduce_sum", {joined}, {{"axis", std::int64_t{2}}}));
  expect_on_device(net, {2e-5, 2e-5});
}

// A sum that stays in 32 bits is not converted to be cut in parts: what is made of these has 16 again.
TEST_F(Parts, OfASumInHalfPrecision) {
  Net net(4);
  const auto computed = [&] { return net.node("abs", {stored(net, net.input(DType::f32, {2, 1, 256}, -3, 3))}); };
  const ValueId sum = net.node("add", {computed(), computed()});
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < 4; ++i) parts.push_back(slice(net, sum, {0, 0, 64 * i}, {1, 1, 64}));
  const ValueId made = net.node("sigmoid", {parts[0]});
  ValueId all = net.node("sub", {made, parts[1]});
  for (std::size_t i = 2; i < 4; ++i)
    all = net.node("maximum", {all, parts[i]}, {{"nan_mode", std::string("propagate")}});
  net.output(net.node("reduce_sum", {all}, {{"axis", std::int64_t{2}}}));
  const Graph halves = shaders::in_half_precision(net.graph, {.sums = true});
  for (ValueId v : parts) EXPECT_EQ(halves[v].type.dtype, DType::f32);
  EXPECT_EQ(halves[made].type.dtype, DType::f16);
  const auto program = shaders::compile(net.graph, base, shaders::Precision::fp16, nullptr, {.sums = true});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->tiers.at(0).dispatches.size(), 4u);  // two are summed, and the parts together
}

}  // namespace
}  // namespace tosaic::test
