// SPDX-License-Identifier: Apache-2.0
// An elementwise dispatch that stores what others read as well, and goes on with it: where all others come later.
#include <fmt/format.h>

#include "delegates/vulkan_graph/hosted_graph.h"
#include "shaders/computed.h"
#include "shaders/half_precision.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

using shaders::Precision;
using vulkan_program::TierId;

class SeveralResults : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }

  static ValueId input(Net& net, DType type = DType::f32, const Shape& shape = {2, 5, 8}) {
    return is_float(type) ? net.input(type, shape, -2, 2) : net.input(type, shape, -100, 100);
  }
  // A dispatch of its own.
  static ValueId summed(Net& net, ValueId v, std::int64_t axis = 0) {
    return net.node("reduce_sum", {v}, {{"axis", axis}});
  }
  static std::size_t dispatches(const Net& net, TierId tier, Precision precision = Precision::fp32) {
    return compiled(net.graph, {&tier, 1}, precision).tiers.at(0).dispatches.size();
  }
  // Of the tiers of CPU devices and of any device.
  static void expect(const Net& net, std::size_t wanted, const char* what, std::optional<std::size_t> on_cpus = {}) {
    SCOPED_TRACE(what);
    EXPECT_EQ(dispatches(net, TierId::base), wanted);
    EXPECT_EQ(dispatches(net, TierId::cpu), on_cpus.value_or(wanted));
    expect_of_every_tier(net, {2e-5, 2e-5}, what);
  }
  static void expect_bits(const Net& net, std::size_t wanted, const char* what) {
    SCOPED_TRACE(what);
    for (const TierId tier : {TierId::base, TierId::cpu}) EXPECT_EQ(dispatches(net, tier), wanted);
    expect_of_every_tier(net, {}, what);
  }
};

TEST_F(SeveralResults, EachWithAReaderOfItsOwn) {
  Net net;
  const ValueId early = net.node("add", {input(net), input(net)}), late = net.node("tanh", {early});
  net.output(summed(net, early));
  net.output(summed(net, late));
  expect(net, 3, "each is summed");
}

TEST_F(SeveralResults, ThatAreOutputs) {
  for (const bool both : {false, true}) {
    Net net;
    const ValueId early = net.node("add", {input(net), input(net)}), late = net.node("exp", {early});
    net.output(early);
    net.output(both ? late : summed(net, late));
    expect(net, both ? 1 : 2, both ? "both" : "the early one");
  }
}

// What the early one is read by stands before the last one.
TEST_F(SeveralResults, AReaderBetween) {
  const auto with = [](const char* what, const auto& between, std::size_t dispatches) {
    Net net;
    const ValueId early = net.node("add", {input(net), input(net)});
    const ValueId other = between(net, early);
    const ValueId late = net.node("tanh", {early});
    net.output(other);
    net.output(summed(net, late));
    expect(net, dispatches, what);
  };
  with(
      "a sum", [](Net& net, ValueId v) { return summed(net, v); }, 4);
  with(
      "a sum of what it is seen as",
      [](Net& net, ValueId v) {
        return summed(net, shaped(net, v, {10, 8}));
      },
      4);
  with(
      "a movement",
      [](Net& net, ValueId v) {
        return net.node("reverse", {v}, {{"axis", std::int64_t{1}}});
      },
      4);
}

// Seen as something else before the last one, and read after it.
TEST_F(SeveralResults, AViewBetween) {
  Net net;
  const ValueId early = net.node("add", {input(net), input(net)});
  const ValueId view = shaped(net, shaped(net, early, {10, 8}), {4, 20});
  const ValueId late = net.node("tanh", {early});
  net.output(summed(net, late));
  net.output(summed(net, view));
  net.output(shaped(net, view, {8, 10}));
  expect(net, 3, "views");
}

// What is made of the early one outside comes back: the last one waits for it.
TEST_F(SeveralResults, ThatNeedEachOther) {
  const auto with = [](const char* what, const auto& around, std::size_t base, std::size_t cpu) {
    Net net;
    const ValueId early = net.node("add", {input(net), input(net)});
    const ValueId other = around(net, early);
    net.output(summed(net, product(net, net.node("tanh", {early}), other)));
    expect(net, base, what, cpu);
  };
  with(
      "by a sum", [](Net& net, ValueId v) { return summed(net, v, 2); }, 4, 4);
  with(
      "by a view",
      [](Net& net, ValueId v) {
        return shaped(net, v, {2, 5, 8});
      },
      3, 3);
  with(
      "by views",
      [](Net& net, ValueId v) {
        return shaped(net, shaped(net, v, {80}), {2, 5, 8});
      },
      3, 3);
  with(
      "by a movement",
      [](Net& net, ValueId v) {
        return net.node("reverse", {v}, {{"axis", std::int64_t{0}}});
      },
      4, 4);
  const std::vector<std::int64_t> perms{1, 0, 2};
  with(
      "by one that is looked through",
      [&](Net& net, ValueId v) {
        const ValueId turned = net.node("transpose", {v}, {{"perms", perms}});
        return net.node("transpose", {net.node("exp", {turned})}, {{"perms", perms}});
      },
      4, 6);
}

// One that two others are made of, in one dispatch, and each of which is stored.
TEST_F(SeveralResults, OfADiamond) {
  Net net;
  const ValueId first = net.node("add", {input(net), input(net)}), left = net.node("tanh", {first}),
                right = net.node("sigmoid", {first}), last = product(net, left, right);
  for (ValueId v : {first, left, right, last}) net.output(summed(net, v, 2));
  expect(net, 5, "four");
}

// Those of more values than a dispatch binds are others.
TEST_F(SeveralResults, ThatDoNotFit) {
  Net net;
  ValueId v = input(net);
  for (int i = 0; i < 20; ++i) {
    v = net.node("add", {v, input(net)});
    net.output(v);
  }
  expect(net, 4, "five have six operands");
}

// A chain of states, each read by the next step and by what is returned: steps of an LSTM without their products.
TEST_F(SeveralResults, OfARecurrence) {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    Net net(3);
    ValueId state = input(net, DType::f32, {1, 64}), sum = input(net, DType::f32, {1, 64});
    std::vector<ValueId> rows;
    for (int i = 0; i < 4; ++i) {
      const ValueId weight = net.constant(DType::f32, {256, 1, 1, 64}, -0.3, 0.3);
      const ValueId gates = shaped(net, net.conv2d(shaped(net, state, {1, 1, 1, 64}), weight), {1, 256});
      const auto gate = [&](const char* op, std::int64_t at) {
        return net.node(op, {net.node("slice", {gates, net.shape({0, 64 * at}), net.shape({1, 64})})});
      };
      const ValueId kept = product(net, gate("sigmoid", 0), sum);
      sum = net.node("add", {kept, product(net, gate("sigmoid", 1), gate("tanh", 2))});
      state = product(net, gate("sigmoid", 3), net.node("tanh", {sum}));
      rows.push_back(state);
    }
    net.output(summed(net, net.node("concat", rows, {{"axis", std::int64_t{0}}})));
    net.output(sum);
    // A step is one, and the last is a sum.
    if (precision == Precision::fp32) EXPECT_EQ(dispatches(net, TierId::base, precision), 5u);
    const double loose = precision == Precision::fp16 ? 5e-3 : 2e-5;
    expect_of_every_tier(net, {loose, loose}, "a recurrence", precision);
  }
}

// What goes on has 16 bits: the second reader, which has it from memory, makes the same of it.
TEST_F(SeveralResults, InHalfPrecision) {
  Net net;
  const ValueId a = input(net), early = product(net, a, input(net));
  for (int i = 0; i < 2; ++i) net.output(net.node("sub", {early, a}));
  for (const TierId tier : {TierId::coopmat, TierId::base, TierId::cpu}) {
    EXPECT_EQ(dispatches(net, tier, Precision::fp16), 2u);
    Computed computed(compiled(net.graph, {&tier, 1}, Precision::fp16));
    computed.run(net.inputs);
    expect_same(computed.output(0), computed.output(1), {}, std::string(row_of(tier).name));
  }
  expect_of_every_tier(net, {2e-3, 2e-3}, "half precision", Precision::fp16);
  const auto stored = shaders::stored_in_half_precision(net.graph, {}, TierId::base);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ((*stored)[early].type.dtype, DType::f16);
}

TEST_F(SeveralResults, OfIntegers) {
  Net net;
  const ValueId x = input(net, DType::i8), y = input(net, DType::i8);
  const auto wide = [&](ValueId v) { return net.rescale(v, DType::i32, 20, 24, false, 3); };
  const auto narrow = [&](ValueId v, DType type) { return net.rescale(v, type, 36, 38, false, 0, 0); };
  const ValueId early = narrow(net.node("add", {wide(x), wide(y)}), DType::i8);
  const ValueId late = narrow(net.node("sub", {wide(early), wide(x)}), DType::i8);
  net.output(summed(net, wide(shaped(net, early, {5, 16}))));
  net.output(late);
  expect_bits(net, 3, "of 8 bits");
}

TEST_F(SeveralResults, OfOtherTypes) {
  for (const Shape& shape : {Shape{2, 5, 8}, Shape{3, 5, 7}}) {
    Net net;
    const ValueId x = input(net, DType::f32, shape), y = input(net, DType::f32, shape);
    const ValueId where = net.node("greater", {x, y});
    const ValueId kept = net.node("select", {where, x, y});
    const ValueId whole = net.node("cast", {kept}, {}, DType::i16), bytes = net.node("cast", {whole}, {}, DType::i8),
                  half = net.node("cast", {kept}, {}, DType::f16);
    const ValueId last =
        net.node("add", {net.node("cast", {bytes}, {}, DType::f32), net.node("cast", {half}, {}, DType::f32)});
    for (ValueId v : {where, whole, bytes, half, last, kept}) net.output(v);
    expect_bits(net, 1, "six types");
  }
}

// Attention multiplies by the number itself, and reads what is multiplied: both are stored. So it does where the
// product has been moved.
TEST_F(SeveralResults, OfWhichOneIsLookedThrough) {
  for (const bool moved : {false, true}) {
    Net net;
    const ValueId zero = net.zero(DType::f32);
    const auto computed = [&] { return net.node("abs", {input(net, DType::f32, {2, 32, 32})}); };
    const auto turned = [&](ValueId v, const Sizes& perms) { return net.node("transpose", {v}, {{"perms", perms}}); };
    const ValueId early = moved ? shaped(net, computed(), {1, 32, 2, 32}) : computed();
    ValueId queries = product(net, net.node("floor", {early}),
                              net.constant(DType::f32, moved ? Shape{1, 1, 1, 1} : Shape{1, 1, 1}, 0.25, 0.25));
    if (moved) queries = shaped(net, turned(queries, {0, 2, 1, 3}), {2, 32, 32});
    const ValueId keys = turned(computed(), {0, 2, 1});
    const ValueId weights = softmax(net, net.node("matmul", {queries, keys, zero, zero}, {}, DType::f32));
    net.output(net.node("matmul", {weights, computed(), zero, zero}, {}, DType::f32));
    net.output(summed(net, queries));
    constexpr TierId coopmat = TierId::coopmat;
    const auto dispatches = compiled(net.graph, {&coopmat, 1}, Precision::fp16).tiers.at(0).dispatches;
    EXPECT_EQ(std::ranges::count(dispatches, "attention", &vulkan_program::Dispatch::kernel), 1);
    expect_of_every_tier(net, {1e-2, 1e-2}, "attention", Precision::fp16);
  }
}

// What is written to a VARIABLE is read further in the same dispatch.
TEST_F(SeveralResults, OfAState) {
  auto graph = parse(R"(graph @main(%x: 4xf32) -> (%y) {
  %first: 4xf32 = constant [1.0, 2.0, 3.0, 4.0]
  tosa.variable(%first) {name="sum", var_shape=[4], type=f32}
  %before: 4xf32 = tosa.variable_read() {name="sum"}
  %sum: 4xf32 = tosa.add(%before, %x)
  tosa.variable_write(%sum) {name="sum"}
  %top: 4xf32 = tosa.maximum(%sum, %x) {nan_mode="propagate"}
  %y: 4xf32 = tosa.add(%top, %x)
})");
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  auto hosted = delegates::HostedGraph::load(*graph, "");
  ASSERT_TRUE(hosted.ok()) << render(hosted.error(), false);
  tosa::Variables variables;
  for (const float x : {1.0f, -20.0f, 3.5f}) {
    const Tensor given{{DType::f32, Shape{4}, {}}, Bytes::of(std::vector<float>(4, x))};
    const auto wanted = interp::run(*graph, {given}, {.variables = &variables});
    ASSERT_TRUE(wanted.ok());
    const auto found = hosted->run({given});
    ASSERT_TRUE(found.ok()) << render(found.error(), false);
    expect_same((*found)[0], (*wanted)[0], {}, "a state");
  }
}

// Nodes at random over what is there, elementwise ones for the most part.
TEST_F(SeveralResults, OfAnyGraph) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    Net net(seed);
    const auto pick = [&](const std::vector<ValueId>& from) {
      return from[static_cast<std::size_t>(net.integer(0, std::ssize(from) - 1))];
    };
    std::vector<ValueId> values{input(net, DType::i32, {2, 4, 32}), input(net, DType::i32, {2, 4, 32})};
    for (int i = 0; i < 24; ++i) {
      const ValueId a = pick(values), b = pick(values);
      const auto both = [&](const char* op) { return net.node(op, {a, b}); };
      switch (net.integer(0, 11)) {
        case 0: values.push_back(both("sub")); break;
        case 1: values.push_back(both("bitwise_xor")); break;
        case 2: values.push_back(net.node("abs", {a})); break;
        case 3:
          values.push_back(net.rescale(net.rescale(a, DType::i8, 31, 34, false), DType::i32, 30, 30, false));
          break;
        case 4: values.push_back(shaped(net, shaped(net, a, {8, 32}), {2, 4, 32})); break;
        case 5: values.push_back(net.node("reverse", {a}, {{"axis", std::int64_t{1}}})); break;
        case 6: values.push_back(net.node("sub", {a, summed(net, b, net.integer(0, 2))})); break;
        case 7: {
          const ValueId upper = net.node("slice", {a, net.shape({1, 0, 0}), net.shape({1, 4, 32})}),
                        lower = net.node("slice", {b, net.shape({0, 0, 0}), net.shape({1, 4, 32})});
          values.push_back(net.node("concat", {upper, lower}, {{"axis", std::int64_t{0}}}));
          break;
        }
        default: values.push_back(both("add"));
      }
      if (net.integer(0, 5) == 0) net.output(values.back());
    }
    net.output(values.back());
    expect_of_every_tier(net, {}, fmt::format("seed {}", seed));
    if (HasFailure()) {
      ADD_FAILURE() << print(net.graph);
      return;
    }
  }
}

}  // namespace
}  // namespace tosaic::test
