// SPDX-License-Identifier: Apache-2.0
// What the products refuse, by label.
#include <gtest/gtest.h>

#include "targets/ethos_u/products.h"
#include "targets/target.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

std::string refusal(const tosa::Product& product, const OneNode& node) {
  const Graph graph = node.graph();
  const auto broken = product.check(tosa::View(graph, graph.nodes[0]));
  return broken ? broken->label : "";
}

OneNode convolution(const std::string& op, Shape x, Shape weight, Ints stride, DType weights = DType::i8) {
  const std::int64_t channels = op == "conv2d" ? weight.size(0) : weight.size(2) * weight.size(3);
  const std::vector<double> ones(static_cast<std::size_t>(weight.elements()), 1);
  return {op,
          {in(DType::i8, x), constant(weights, weight, ones),
           constant(DType::i32, {channels}, std::vector<double>(channels, 0)), constant(DType::i8, {1}, {0}),
           constant(weights, {1}, {0})},
          {{"pad", Ints{0, 0, 0, 0}},
           {"stride", stride},
           {"dilation", Ints{1, 1}},
           {"acc_type", DType::i32},
           {"local_bound", false}}};
}

TEST(EthosU, convolutions) {
  const auto &u55 = ethos_u::u55(), &u85 = ethos_u::u85();
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 9, 9, 4}, {8, 3, 3, 4}, {2, 2})), "");
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 1, 4097, 4}, {8, 1, 4097, 4}, {1, 1})), "ethos-u.conv2d.kernel");
  EXPECT_EQ(refusal(u85, convolution("conv2d", {1, 1, 4097, 4}, {8, 1, 4097, 4}, {1, 1})), "ethos-u.conv2d.kernel");
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 3, 3, 4}, {8, 1, 1, 4}, {1, 1}, DType::i4)),
            "ethos-u.conv2d.weights");
}

TEST(EthosU, what_only_u85_has) {
  for (const OneNode& node : {OneNode{"equal", {in(DType::i32, {4}), in(DType::i32, {4})}},
                              OneNode{"bitwise_and", {in(DType::i32, {4}), in(DType::i32, {4})}},
                              OneNode{"gather", {in(DType::i8, {1, 4, 2}), in(DType::i32, {1, 3})}}}) {
    EXPECT_EQ(refusal(ethos_u::u55(), node), "ethos-u." + node.op + ".operator");
    EXPECT_EQ(refusal(ethos_u::u65(), node), "ethos-u." + node.op + ".operator");
    EXPECT_EQ(refusal(ethos_u::u85(), node), "");
  }
}

TEST(EthosU, computed_weights_are_for_u85) {
  const auto node = [](bool computed) {
    OneNode conv = convolution("conv2d", {1, 9, 9, 4}, {8, 3, 3, 4}, {1, 1});
    if (computed) conv.operands[1] = in(DType::i8, {8, 3, 3, 4});
    return conv;
  };
  EXPECT_EQ(refusal(ethos_u::u55(), node(false)), "");
  EXPECT_EQ(refusal(ethos_u::u55(), node(true)), "ethos-u.conv2d.weights");
  EXPECT_EQ(refusal(ethos_u::u65(), node(true)), "ethos-u.conv2d.weights");
  EXPECT_EQ(refusal(ethos_u::u85(), node(true)), "");
}

TEST(EthosU, u85_counts_indices_in_16_bits) {
  const auto gather = [](std::int64_t batch, std::int64_t count) {
    return OneNode{"gather", {in(DType::i8, {batch, 4, 2}), in(DType::i32, {batch, count})}};
  };
  EXPECT_EQ(refusal(ethos_u::u85(), gather(2, 65535)), "");
  EXPECT_EQ(refusal(ethos_u::u85(), gather(1, 65536)), "ethos-u.gather.indices");
  EXPECT_EQ(refusal(ethos_u::u85(), gather(65536, 1)), "ethos-u.gather.indices");
}

TEST(EthosU, shifts_and_reductions) {
  const auto& u55 = ethos_u::u55();
  const auto shift = [&](bool round) {
    return OneNode{"arithmetic_right_shift", {in(DType::i32, {4}), in(DType::i32, {4})}, {{"round", round}}};
  };
  EXPECT_EQ(refusal(u55, shift(true)), "");
  EXPECT_EQ(refusal(u55, shift(false)), "ethos-u.arithmetic_right_shift.round");
  const auto argmax = [&](Shape shape, std::int64_t axis) {
    return OneNode{"argmax", {in(DType::i8, shape)}, {{"axis", axis}, {"nan_mode", std::string("propagate")}}};
  };
  EXPECT_EQ(refusal(u55, argmax({1, 4, 127}, 2)), "");
  EXPECT_EQ(refusal(u55, argmax({1, 4, 128}, 2)), "ethos-u.argmax.axis");
  EXPECT_EQ(refusal(u55, argmax({1, 4, 127}, 1)), "ethos-u.argmax.axis");
}

TEST(EthosU, resizing) {
  const auto resize = [](double n, double d, double offset, double border, std::string mode) {
    return OneNode{"resize",
                   {in(DType::i8, {1, 4, 4, 2}), dims({n, d, n, d}), dims({offset, offset}), dims({border, border})},
                   {{"mode", std::move(mode)}}};
  };
  EXPECT_EQ(refusal(ethos_u::u55(), resize(4, 2, -1, 1, "nearest")), "");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(3, 2, 0, 0, "nearest")), "ethos-u.resize.scale");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(4, 2, -1, 1, "bilinear")), "");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(22, 3, 0, 0, "bilinear")), "ethos-u.resize.mode");
  EXPECT_EQ(refusal(ethos_u::u85(), resize(2, 1, -1, 0, "nearest")), "");
}

TEST(Targets, an_unknown_name_suggests_the_nearest) {
  auto found = find_target("ethos-u55-129", "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, "target.unknown");
  EXPECT_NE(found.error().help.find("ethos-u55-128"), std::string::npos) << found.error().help;
  EXPECT_EQ(found.error().help.find("tosa-fp"), std::string::npos) << found.error().help;
}

}  // namespace
}  // namespace tosaic
