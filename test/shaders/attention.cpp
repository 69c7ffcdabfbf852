// SPDX-License-Identifier: Apache-2.0
// What GPUs do in few dispatches: rows that are reduced and read again, matrices that are read where they were before
// they were moved and written where they are moved to, tails behind RESHAPE and those that come together again.
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

class Attention : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

ValueId along_last(Net& net, const char* op, ValueId v) {
  Attrs attrs{{"axis", std::int64_t{net.graph[v].type.shape.rank() - 1}}};
  if (std::string_view(op) == "reduce_max") attrs.set("nan_mode", std::string("propagate"));
  return net.node(op, {v}, attrs);
}
ValueId product(Net& net, ValueId a, ValueId b) { return net.node("mul", {a, b, net.numbers(DType::i8, {0})}); }
ValueId shaped(Net& net, ValueId v, const Sizes& sizes) { return net.node("reshape", {v, net.shape(sizes)}); }

ValueId softmax(Net& net, ValueId x) {
  const ValueId e = net.node("exp", {net.node("sub", {x, along_last(net, "reduce_max", x)})});
  return product(net, e, net.node("reciprocal", {along_last(net, "reduce_sum", e)}));
}

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

// Heads of one product of queries, keys and values, as exported programs have them.
void add_heads(Net& net, std::int64_t places, std::int64_t heads, std::int64_t wide) {
  const std::int64_t all = heads * wide;
  const ValueId x = net.node("tanh", {net.input(DType::f32, {1, places, 3 * all}, -2, 2)});
  const auto part = [&](std::int64_t which, const Sizes& order) {
    const ValueId cut = net.node("slice", {x, net.shape({0, 0, which * all}), net.shape({1, places, all})});
    const ValueId moved = net.node("transpose", {shaped(net, cut, {1, places, heads, wide})}, {{"perms", order}});
    return shaped(net, moved, order[2] == 3 ? Sizes{heads, wide, places} : Sizes{heads, places, wide});
  };
  const ValueId none = net.zero(DType::f32);
  const ValueId scores = net.node("matmul", {part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1}), none, none});
  const ValueId seen = net.node("matmul", {softmax(net, scores), part(2, {0, 2, 1, 3}), none, none});
  const ValueId together =
      net.node("transpose", {shaped(net, seen, {1, heads, places, wide})}, {{"perms", Sizes{0, 2, 1, 3}}});
  net.output(net.node("sigmoid", {shaped(net, together, {1, places, all})}));
}

TEST_F(Attention, HeadsAreNotMoved) {
  Net net(7);
  add_heads(net, 20, 3, 8);
  EXPECT_EQ(dispatches(net), 5u);  // tanh, scores, softmax, what is seen, sigmoid
  expect_on_device(net, {2e-5, 2e-5});
  Net narrow(8);
  add_heads(narrow, 17, 2, 5);  // no whole vectors: moved as the graph says
  expect_on_device(narrow, {2e-5, 2e-5});
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
