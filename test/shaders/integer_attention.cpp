// SPDX-License-Identifier: Apache-2.0
// Attention of 8-bit integers in tier coopmat-int8, computed instruction by instruction, bit for bit what the
// interpreter says: in one dispatch, or in three where scratch memory does not hold the scores.
#include <fmt/format.h>

#include "shaders/computed.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

constexpr vulkan_program::TierId tier[] = {vulkan_program::TierId::coopmat_int8};

// Together again, behind what finishes the product.
ValueId together(Net& net, const IntegerHeads& heads) {
  const std::int64_t places = heads.places, count = heads.count, width = heads.of_values();
  const ValueId seen = net.rescale(attended_integers(net, heads), DType::i8, 42, 42, false, 0, -7);
  const ValueId four = shaped(net, seen, {1, count, places, width});
  return shaped(net, net.node("transpose", {four}, {{"perms", Sizes{0, 2, 1, 3}}}), {1, places, count * width});
}

using Names = std::vector<std::string>;
Names kernels_of(const Net& net) {
  Names names;
  const auto program = compiled(net.graph, tier);
  for (const auto& d : program.tiers.at(0).dispatches) names.push_back(d.kernel);
  return names;
}

void expect_attention(const Net& net, const Names& kernels) {
  EXPECT_EQ(kernels_of(net), kernels);
  expect_matrices(net, tier[0], {}, true);
}
const Names one_dispatch{"int8_attention"}, three_dispatches{"matmul", "rows", "matmul"};

TEST(IntegerAttention, IsOneDispatch) {
  const IntegerHeads cases[] = {
      {16, 3, 32},    {196, 1, 64}, {197, 1, 32},           {70, 2, 96},           {64, 1, 128},
      {130, 2, 16},   {33, 2, 48},  {100, 1, 64, 0},        {50, 2, 32, -128},     {49, 1, 64, 127},
      {40, 1, 80, 5}, {129, 1, 32}, {65, 1, 32, 3, {}, 64}, {65, 2, 64, 3, {}, 16}};
  for (const IntegerHeads& heads : cases) {
    SCOPED_TRACE(fmt::format("{} places, {} heads, width {}", heads.places, heads.count, heads.width));
    Net net(21);
    net.output(together(net, heads));
    expect_attention(net, one_dispatch);
  }
}

TEST(IntegerAttention, OfManyPlaces) {
  for (const IntegerHeads& heads : {IntegerHeads{577, 1, 32}, {1030, 1, 16}, {769, 1, 64}}) {
    SCOPED_TRACE(heads.places);
    Net net(22);
    net.output(together(net, heads));
    expect_attention(net, one_dispatch);
  }
}

TEST(IntegerAttention, Masked) {
  for (const std::int64_t places : {17, 100}) {
    SCOPED_TRACE(places);
    Net net(23);
    net.output(together(net, {places, 2, 32, 3, masked_integers}));
    expect_attention(net, one_dispatch);
  }
}

// Of few keys, for which scratch memory has the room of a step.
TEST(IntegerAttention, OfMoreHeadsThanScratchMemoryHolds) {
  Net net(24);
  net.output(together(net, {16, 32768, 16}));
  EXPECT_EQ(kernels_of(net), three_dispatches);
}

// All of it at once: more than the matrices of a tile, in any order, with numbers of their own for each channel.
TEST(IntegerAttention, AsOtherTiersComputeIt) {
  Net net(27);
  net.output(together(net, {45, 2, 32, -5, masked_integers, 48}));
  EXPECT_EQ(kernels_of(net), one_dispatch);
  expect_of_every_tier(net, {}, "attention of integers");
}

// Rows that are no whole vectors.
TEST(IntegerAttention, WhatItDoesNotTake) {
  for (const auto& [places, width] : {std::pair<std::int64_t, std::int64_t>{40, 24}, {40, 20}}) {
    Net net(25);
    net.output(together(net, {places, 2, width}));
    EXPECT_EQ(std::ranges::count(kernels_of(net), "int8_attention"), 0) << width;
    expect_matrices(net, tier[0], {}, true);
  }
}

// What is seen on the way is computed as the graph says: scores, what is made of them, weights.
TEST(IntegerAttention, ThatIsSeen) {
  const auto seen = [](Net& net, ValueId scores) {
    net.output(scores);
    return scores;
  };
  Net net(26);
  net.output(together(net, {40, 1, 32, 3, seen}));
  EXPECT_EQ(std::ranges::count(kernels_of(net), "int8_attention"), 0);
  expect_matrices(net, tier[0], {}, true);
}

}  // namespace
}  // namespace tosaic::test
