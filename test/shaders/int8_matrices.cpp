// SPDX-License-Identifier: Apache-2.0
// Tier coopmat-int8: products and convolutions of 8-bit integers by matrices of subgroups, computed instruction by
// instruction, bit for bit what the interpreter says; and lies about such matrices told to the checker.
#include "shaders/computed.h"
#include "shaders/images.h"

namespace tosaic::test {
namespace {

using spirv::Opcode;
using spirv::Word;
constexpr vulkan_program::TierId tier[] = {vulkan_program::TierId::coopmat_int8};

void expect_exact(const Net& net) { expect_matrices(net, tier[0], {}, true); }

ValueId quantised(Net& net, const Sizes& sizes) { return net.input(DType::i8, sizes, -128, 127); }
ValueId matmul(Net& net, ValueId a, ValueId b, std::int64_t a_zero, std::int64_t b_zero) {
  return net.node("matmul", {a, b, net.numbers(DType::i8, {a_zero}), net.numbers(DType::i8, {b_zero})});
}

TEST(Int8Matrices, Products) {
  const struct {
    std::int64_t batches, rows, depth, columns, left_zero, right_zero;
  } sizes[] = {{1, 1, 4, 4, 0, 0},          {2, 17, 36, 24, -128, 7},  {1, 40, 64, 16, 3, 0},  {3, 5, 100, 48, 0, -9},
               {1, 100, 136, 72, 127, 127}, {2, 20, 197, 32, -128, 5}, {1, 33, 32, 49, 2, -3}, {1, 19, 203, 61, 1, 1}};
  for (const auto& s : sizes) {
    SCOPED_TRACE(std::to_string(s.depth) + " deep, " + std::to_string(s.columns) + " columns");
    Net net(1);
    const ValueId sums = matmul(net, quantised(net, {s.batches, s.rows, s.depth}),
                                quantised(net, {s.batches, s.depth, s.columns}), s.left_zero, s.right_zero);
    net.output(sums);
    net.output(net.rescale(sums, DType::i8, 38, 42, true, 0, -5));
    expect_exact(net);
  }
}

// The largest sums that there are.
TEST(Int8Matrices, ProductsOfExtremes) {
  Net net(1);
  const ValueId a = net.input(DType::i8, {1, 16, 1024}, -128, -128),
                b = net.input(DType::i8, {1, 1024, 16}, -128, -128);
  net.output(matmul(net, a, b, 127, 127));
  expect_exact(net);
}

// Keys lie as columns, and values as rows: both are read where they were before they were moved.
TEST(Int8Matrices, ProductsOfHeads) {
  for (const std::int64_t places : {48, 50, 197}) {
    constexpr std::int64_t count = 2, width = 32;
    Net net(2);
    const ValueId x = quantised(net, {1, places, 3 * count * width});
    const auto part = [&](std::int64_t which, const Sizes& order) {
      const Sizes begin{0, 0, which * count * width}, size{1, places, count * width};
      const ValueId cut = net.node("slice", {x, net.shape(begin), net.shape(size)}),
                    four = net.node("reshape", {cut, net.shape({1, places, count, width})}),
                    moved = net.node("transpose", {four}, {{"perms", order}});
      return net.node("reshape",
                      {moved, net.shape(order[2] == 3 ? Sizes{count, width, places} : Sizes{count, places, width})});
    };
    const ValueId scores = matmul(net, part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1}), 3, -4),
                  weights = net.rescale(scores, DType::i8, 38, 40, false, 0, -128);
    net.output(weights);
    const ValueId seen = net.rescale(matmul(net, weights, part(2, {0, 2, 1, 3}), -128, 11), DType::i8, 38, 40, false);
    const ValueId four = net.node("reshape", {seen, net.shape({1, count, places, width})});
    net.output(net.node("transpose", {four}, {{"perms", Sizes{0, 2, 1, 3}}}));
    expect_exact(net);
  }
}

Net layer(const Sizes& image, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  Net net(2);
  const std::int64_t around = kernel / 2;
  const ValueId sums =
      plain(net, quantised(net, image), out, {kernel, kernel}, {around, around, around, around}, {stride, stride});
  net.output(sums);
  net.output(net.rescale(sums, DType::i8, 38, 44, true, 0, 3));
  return net;
}

TEST(Int8Matrices, Convolutions) {
  expect_exact(layer({2, 9, 9, 16}, 24, 3, 1));
  expect_exact(layer({2, 8, 8, 132}, 17, 1, 1));
  expect_exact(layer({1, 15, 15, 4}, 20, 7, 2));
  expect_exact(layer({1, 16, 16, 128}, 64, 1, 1));
  expect_exact(layer({1, 12, 10, 100}, 33, 3, 1));
}

// The lines of patches are read as channels.
TEST(Int8Matrices, Patches) {
  Net net(5);
  const ValueId sums = plain(net, quantised(net, {2, 16, 24, 3}), 24, {8, 8}, {0, 0, 0, 0}, {8, 8});
  net.output(net.rescale(sums, DType::i8, 38, 44, true, 0, 3));
  expect_exact(net);
}

// Other images of three channels are computed otherwise, and sums of few products.
TEST(Int8Matrices, WhatTheyDoNotTake) {
  expect_matrices(layer({1, 9, 9, 3}, 16, 7, 1), tier[0], {}, false);
  expect_matrices(layer({1, 9, 9, 12}, 16, 3, 1), tier[0], {}, false);
}

// By the tiles of large products, whose steps are read ahead.
TEST(Int8Matrices, LargeProducts) {
  for (const auto& [in, out] :
       {std::pair<std::int64_t, std::int64_t>{1040, 64 * 90}, {1040, 64 * 265 + 8}, {1168, 96 * 265}})
    expect_exact(layer({1, 1, 5, in}, out, 1, 1));
}

TEST(Int8Matrices, DepthwiseBehindPlain) { expect_behind_plain(tier[0], DType::i8, {132, 128, 200}, {}); }

TEST(Int8Matrices, LiesAreFound) {
  const vulkan_program::Program program = compiled(layer({1, 8, 8, 128}, 17, 1, 1).graph, tier);
  const auto expect_said = [&](const char* part, const std::function<bool(Opcode op, Word * operands)>& change) {
    const std::string said = said_of_changed(program.tiers.at(0), change);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect_said("numbers that are signed otherwise", [&](Opcode op, Word* o) {
    if (op != Opcode::cooperative_matrix_mul_add) return false;
    o[5] = 1;
    return true;
  });
  expect_said("an operand of another type", [&](Opcode op, Word* o) {
    if (op != Opcode::cooperative_matrix_mul_add) return false;
    o[3] = o[2];
    return true;
  });
  // Rows and columns the other way round.
  expect_said("a matrix of another size", [&](Opcode op, Word* o) {
    if (op != Opcode::type_cooperative_matrix || o[3] == o[4]) return false;
    std::swap(o[3], o[4]);
    return true;
  });
  // Without the capability, bytes are in buffers alone.
  expect_said("a matrix for something else", [&](Opcode op, Word* o) {
    if (op != Opcode::capability || o[0] != static_cast<Word>(spirv::Capability::int8)) return false;
    o[0] = static_cast<Word>(spirv::Capability::float16);
    return true;
  });
}

TEST(Int8Matrices, FactorsAreNotStored) {
  Net net(1);
  net.output(matmul(net, quantised(net, {1, 16, 64}), quantised(net, {1, 64, 16}), 3, 5));
  Word ones = 0;  // a factor that is there to the end
  const std::string said = said_of_changed(compiled(net.graph, tier).tiers.at(0), [&](Opcode op, Word* o) {
    if (op == Opcode::cooperative_matrix_load && ones == 0) ones = o[1];
    if (op != Opcode::cooperative_matrix_store) return false;
    o[1] = ones;
    return true;
  });
  EXPECT_NE(said.find("a factor that is stored"), std::string::npos) << said;
}

}  // namespace
}  // namespace tosaic::test
