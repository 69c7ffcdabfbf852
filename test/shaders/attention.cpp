// SPDX-License-Identifier: Apache-2.0
// What GPUs do in few dispatches: rows that are reduced and read again, matrices that are read where they were before
// they were moved and written where they are moved to, epilogues after RESHAPE and those that come together again.
#include "shaders/attention_cases.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

class Attention : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

ValueId normalised(Net& net, ValueId x) {
  const std::int64_t size = net.graph[x].type.shape.size(net.graph[x].type.shape.rank() - 1);
  const auto filled = [&](double low, double high, std::int64_t n) {
    Sizes sizes(static_cast<std::size_t>(net.graph[x].type.shape.rank()), 1);
    sizes.back() = n;
    return net.constant(DType::f32, Shape(sizes), low, high);
  };
  const double part = 1.0 / static_cast<double>(size);
  const ValueId mean = product(net, along_last(net, "reduce_sum", x), filled(part, part, 1));
  const ValueId centred = net.node("sub", {x, mean});
  const ValueId variance =
      product(net, along_last(net, "reduce_sum", product(net, centred, centred)), filled(part, part, 1));
  const ValueId root = net.node("rsqrt", {net.node("add", {variance, filled(1e-5, 1e-5, 1)})});
  return net.node("add", {product(net, product(net, centred, root), filled(-1, 1, size)), filled(-1, 1, size)});
}

std::size_t dispatches(const Net& net) { return compiled(net.graph, base).tiers.at(0).dispatches.size(); }

TEST_F(Attention, RowsOfEveryLength) {
  for (std::int64_t size : {16, 17, 33, 130, 577})
    for (std::int64_t rows : {1, 5, 2100}) {
      if (rows * size > 100000) continue;
      Net net(5);
      const ValueId x = net.input(DType::f32, {1, rows, size}, -3, 3);
      net.output(softmax(net, x));
      net.output(normalised(net, x));
      EXPECT_EQ(dispatches(net), 2u) << rows << " of " << size;
      expect_on_device(net, {2e-5, 2e-5});
    }
}

// What is seen outside on the way is computed by itself.
TEST_F(Attention, RowsOfWhichMoreIsSeen) {
  Net net(6);
  const ValueId x = net.input(DType::f32, {3, 40}, -3, 3), least = along_last(net, "reduce_max", x);
  const ValueId e = net.node("exp", {net.node("sub", {x, least})});
  net.output(e);
  net.output(net.node("tanh", {least}));
  net.output(product(net, e, net.node("reciprocal", {along_last(net, "reduce_sum", e)})));
  expect_on_device(net, {2e-5, 2e-5});
}

TEST_F(Attention, HeadsAreNotMoved) {
  Net net(7);
  net.output(attended(net, {20, 3, 8}));
  EXPECT_EQ(dispatches(net), 3u);  // floor, attention, sigmoid
  expect_on_device(net, {2e-5, 2e-5});
  Net single(8);
  single.output(attended(single, {40, 1, 16}));
  EXPECT_EQ(dispatches(single), 3u);
  expect_on_device(single, {2e-5, 2e-5});
  Net narrow(8);
  narrow.output(attended(narrow, {17, 2, 5}));  // no whole vectors: moved as the graph says
  expect_on_device(narrow, {2e-5, 2e-5});
}

TEST_F(Attention, WhereOneDispatchHasNoRoom) {
  for (const Heads& heads : {Heads{15, 3, 8}, Heads{40, 1, 68}, Heads{18, 2, 6}}) {
    Net net(7);
    net.output(attended(net, heads));
    EXPECT_GE(dispatches(net), 5u);  // floor, scores, softmax, what is seen, sigmoid
    expect_on_device(net, {2e-5, 2e-5});
  }
}

TEST_F(Attention, OfFloatsIsOneDispatch) {
  for (const Heads& heads : attention_cases()) {
    if (heads.width > 64) continue;
    SCOPED_TRACE(std::to_string(heads.places) + " places, width " + std::to_string(heads.width));
    Net net(11);
    net.output(attended(net, heads));
    EXPECT_EQ(dispatches(net), 3u);  // floor, attention, the end
    expect_on_device(net, {1e-5, 1e-5});
  }
}

// As softmax makes it: scores of a size whose exponentials would be infinite, and rows with NaN or nothing but -inf.
TEST_F(Attention, OfScoresOfEverySize) {
  Heads heads{70, 2, 32, 40, 1};
  heads.mask = [](Net& net, ValueId scores) { return masked(net, scores, 20); };
  Net net(14);
  net.output(attended(net, heads));
  EXPECT_EQ(dispatches(net), 3u);
  expect_on_device(net, {1e-5, 1e-5});
}

// What a product stores where a data layout operator takes it is read there by all that follows, although they could
// look through the movement: of one head it leaves the order as it is.
TEST_F(Attention, ReadWhereItWasMoved) {
  const auto reads = [](Net& net, int which, ValueId v) -> ValueId {
    const ValueId none = net.zero(DType::f32);
    if (which == 0) return net.node("sigmoid", {v});
    if (which == 1) return net.node("matmul", {v, net.input(DType::f32, {1, 16, 12}, -1, 1), none, none});
    if (which == 2) return net.node("matmul", {net.input(DType::f32, {1, 8, 40}, -1, 1), v, none, none});
    if (which == 3) return softmax(net, v);
    if (which == 4) return along_last(net, "reduce_sum", v);
    if (which == 5) return net.node("transpose", {v}, {{"perms", Sizes{0, 2, 1}}});
    return plain(net, shaped(net, v, {1, 8, 5, 16}), 12, {3, 3}, {1, 1, 1, 1}, {1, 1});
  };
  for (int which = 0; which < 7; ++which)
    for (const std::int64_t heads : {1, 2}) {
      Net net(8);
      const ValueId none = net.zero(DType::f32);
      const ValueId v = net.node("matmul", {net.input(DType::f32, {heads, 40, 24}, -1, 1),
                                            net.input(DType::f32, {heads, 24, 16 / heads}, -1, 1), none, none});
      const ValueId moved =
          net.node("transpose", {shaped(net, v, {1, heads, 40, 16 / heads})}, {{"perms", Sizes{0, 2, 1, 3}}});
      net.output(reads(net, which, shaped(net, moved, {1, 40, 16})));
      SCOPED_TRACE("reader " + std::to_string(which));
      expect_on_device(net, {2e-5, 2e-5});
    }
}

TEST_F(Attention, TailsThatComeTogether) {
  Net net(9);
  const ValueId none = net.zero(DType::f32);
  const ValueId v = shaped(net,
                           net.node("matmul", {net.input(DType::f32, {1, 20, 24}, -1, 1),
                                               net.input(DType::f32, {1, 24, 36}, -1, 1), none, none}),
                           {20, 36});
  const ValueId half = net.constant(DType::f32, {1, 1}, 0.5, 0.5), one = net.constant(DType::f32, {1, 1}, 1, 1);
  net.output(product(net, product(net, v, half), net.node("add", {net.node("erf", {v}), one})));
  EXPECT_EQ(dispatches(net), 1u);
  expect_on_device(net, {2e-5, 2e-5});
}

}  // namespace
}  // namespace tosaic::test
