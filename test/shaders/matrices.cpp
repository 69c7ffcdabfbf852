// SPDX-License-Identifier: Apache-2.0
// Tier coopmat, whose devices are not at hand where tests run: its programs computed instruction by instruction, and
// lies about matrices told to the checker. On a device that has it the other tests run it, too.
#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/compute/run_shader.h"
#include "shaders/attention_cases.h"
#include "shaders/computed.h"
#include "shaders/matrix_tile.h"

namespace tosaic::test {
namespace {

using spirv::Opcode;
using spirv::Word;
constexpr vulkan_program::TierId coopmat[] = {vulkan_program::TierId::coopmat};

void expect_computed(const Net& net, const Tolerance& tolerance, bool matrices,
                     shaders::Precision precision = shaders::Precision::fp32) {
  expect_matrices(net, coopmat[0], tolerance, matrices, precision);
}

TEST(Matrices, Products) {
  const struct {
    std::int64_t batches, rows, depth, columns;
  } sizes[] = {{1, 1, 1, 1}, {2, 17, 33, 24}, {1, 40, 64, 16}, {3, 5, 100, 49}, {1, 100, 136, 72}};
  for (const auto& s : sizes) {
    Net net(1);
    const ValueId a = net.input(DType::f16, {s.batches, s.rows, s.depth}, -1, 1),
                  b = net.input(DType::f16, {s.batches, s.depth, s.columns}, -1, 1);
    const ValueId v = net.node("matmul", {a, b, net.zero(DType::f16), net.zero(DType::f16)}, {}, DType::f32);
    net.output(v);
    net.output(net.node("tanh", {net.node("matmul", {a, b, net.zero(DType::f16), net.zero(DType::f16)})}));
    expect_computed(net, {2e-3, 2e-3}, true);
  }
}

Net layer(std::int64_t side, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, DType type) {
  Net net(2);
  const ValueId x = net.input(type, {2, side, side, in}, -1, 1), first = type == DType::f32 ? net.node("tanh", {x}) : x,
                w = net.constant(type, {out, kernel, kernel, in}, -1, 1), b = net.constant(type, {out}, -1, 1);
  const ValueId v = net.node("conv2d", {first, w, b, net.zero(type), net.zero(type)},
                             {{"pad", std::vector<std::int64_t>{kernel / 2, kernel / 2, kernel / 2, kernel / 2}},
                              {"stride", std::vector<std::int64_t>{stride, stride}},
                              {"dilation", std::vector<std::int64_t>{1, 1}},
                              {"acc_type", DType::f32},
                              {"local_bound", false}});
  net.output(net.node("sigmoid", {v}));
  return net;
}

TEST(Matrices, Convolutions) {
  expect_computed(layer(9, 8, 24, 3, 1, DType::f16), {2e-3, 2e-3}, true);
  expect_computed(layer(8, 16, 17, 1, 1, DType::f16), {2e-3, 2e-3}, true);
  expect_computed(layer(15, 3, 20, 7, 2, DType::f16), {4e-3, 2e-3}, true);
}

// By each of the tiles for those of which there are many, of sizes that it divides and does not; steps that are read
// ahead are no multiple of what there is.
TEST(Matrices, LargeProducts) {
  const struct {
    std::int64_t rows, depth, columns;
    std::uint32_t tile_rows, tile_columns, invocations;
  } cases[] = {
      {5, 8, 8480, 64, 32, 128},   {5, 8, 6160, 64, 64, 128},      {5, 72, 6160, 48, 64, 128},
      {5, 136, 6160, 32, 64, 128}, {5, 256, 64 * 97, 32, 64, 128}, {5, 264, 6160, 64, 64, 256},
      {70, 8, 4240, 96, 64, 128},  {97, 72, 12680, 128, 64, 128},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::to_string(c.rows) + " x " + std::to_string(c.columns) + " by " + std::to_string(c.depth));
    const auto tile = shaders::divided_matrices({1, c.rows, c.columns, c.depth}, shaders::MatrixOf::f16, true).tile;
    EXPECT_EQ(std::tuple(tile.rows, tile.columns, tile.invocations()),
              std::tuple(c.tile_rows, c.tile_columns, c.invocations));
    Net net(2);
    const ValueId x = net.input(DType::f16, {1, 1, c.rows, c.depth}, -1, 1),
                  w = net.constant(DType::f16, {c.columns, 1, 1, c.depth}, -1, 1),
                  b = net.constant(DType::f16, {c.columns}, -1, 1);
    net.output(net.conv2d(x, w, b));
    expect_computed(net, {4e-2, 2e-3}, true);
  }
}

// Products of one matrix are computed at once, so that their tiles are chosen as if they were one.
TEST(Matrices, ProductsSideBySide) {
  const auto module_of = [](int count) {
    Net net(2);
    const ValueId x = net.input(DType::f16, {1, 1, 5, 72}, -1, 1);
    for (int i = 0; i < count; ++i)
      net.output(
          net.conv2d(x, net.constant(DType::f16, {2176, 1, 1, 72}, -1, 1), net.constant(DType::f16, {2176}, -1, 1)));
    expect_computed(net, {4e-2, 2e-3}, true);
    const vulkan_program::Tier tier = compiled(net.graph, coopmat).tiers.at(0);
    EXPECT_EQ(tier.modules.size(), 1u);
    return tier.modules.at(0);
  };
  EXPECT_FALSE(module_of(1) == module_of(3));
}

// Parts of the depth, added up by a second dispatch.
TEST(Matrices, DeepProductsOfFewRows) {
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{2048, 1024}, {2056, 1020}}) {
    Net net(2);
    const ValueId x = net.input(DType::f16, {1, 1, 5, in}, -1, 1), w = net.constant(DType::f16, {out, 1, 1, in}, -1, 1),
                  b = net.constant(DType::f16, {out}, -1, 1);
    net.output(net.node("tanh", {net.conv2d(x, w, b)}));
    expect_computed(net, {4e-2, 2e-3}, true);
    EXPECT_EQ(compiled(net.graph, coopmat).tiers[0].dispatches.size(), 2u);
  }
}

// Floats are multiplied so where they are kept in 16 bits, and only then.
TEST(Matrices, OfFloatsOnlyWhereAskedFor) {
  const Net net = layer(9, 8, 24, 3, 1, DType::f32);
  expect_computed(net, {2e-5, 2e-5}, false);
  expect_computed(net, {1e-2, 1e-2}, true, shaders::Precision::fp16);
  // Where there are none, the tier is that of other devices.
  EXPECT_EQ(compiled(net.graph, every_tier()).tiers.size(), every_tier().size() - 3);
  EXPECT_EQ(compiled(net.graph, every_tier(), shaders::Precision::fp16).tiers.size(), every_tier().size() - 2);
}

TEST(Matrices, DepthwiseBehindPlain) { expect_behind_plain(coopmat[0], DType::f16, {20, 8, 72}, {2e-2, 5e-3}); }

// An input of f32 that is kept in 16 bits is read as it is, from where its channels lie apart.
TEST(Matrices, ImagesOfFloatsInHalfPrecision) {
  Net net(3);
  const ValueId x = net.input(DType::f32, {2, 3, 9, 11}, -1, 1),
                last = net.node("transpose", {x}, {{"perms", Sizes{0, 2, 3, 1}}});
  net.output(net.node("sigmoid", {plain(net, last, 24, {3, 3}, {1, 1, 1, 1}, {2, 2})}));
  EXPECT_EQ(compiled(net.graph, coopmat, shaders::Precision::fp16).tiers.at(0).dispatches.size(), 1u);
  expect_computed(net, {1e-2, 1e-2}, true, shaders::Precision::fp16);
}

TEST(Matrices, AttentionIsOneDispatch) {
  for (const Heads& heads : attention_cases()) {
    SCOPED_TRACE(std::to_string(heads.places) + " places, width " + std::to_string(heads.width));
    Net net(11);
    net.output(attended(net, heads));
    const auto dispatches = compiled(net.graph, coopmat, shaders::Precision::fp16).tiers.at(0).dispatches;
    EXPECT_EQ(dispatches.size(), 3u);  // floor, attention, the end
    expect_computed(net, {2e-3, 2e-3}, true, shaders::Precision::fp16);
  }
}

// Queries of a product of their own, which are scaled behind it: attention multiplies by the factor itself, and reads
// what the product stores.
TEST(Matrices, AttentionReadsQueriesBeforeTheyAreScaled) {
  constexpr std::int64_t places = 48, count = 2, width = 32, all = count * width;
  Net net(13);
  const ValueId x = net.input(DType::f32, {1, 1, places, all}, -0.3, 0.3), none = net.zero(DType::f32);
  const auto part = [&](const Sizes& order, double factor) {
    ValueId four = shaped(net, plain(net, x, all, {1, 1}, {0, 0, 0, 0}, {1, 1}), {1, places, count, width});
    if (factor != 1) four = product(net, four, net.constant(DType::f32, {1, 1, 1, 1}, factor, factor));
    const ValueId moved = net.node("transpose", {four}, {{"perms", order}});
    return shaped(net, moved, order[2] == 3 ? Sizes{count, width, places} : Sizes{count, places, width});
  };
  const ValueId q = part({0, 2, 1, 3}, 0.125), k = part({0, 2, 3, 1}, 1), v = part({0, 2, 1, 3}, 1);
  net.output(
      net.node("abs", {net.node("matmul", {softmax(net, net.node("matmul", {q, k, none, none})), v, none, none})}));
  const auto dispatches = compiled(net.graph, coopmat, shaders::Precision::fp16).tiers.at(0).dispatches;
  EXPECT_EQ(std::ranges::count(dispatches, "attention", &vulkan_program::Dispatch::kernel), 1);
  expect_computed(net, {1e-2, 1e-2}, true, shaders::Precision::fp16);
}

// What is seen on the way, or read in another form, is computed as the graph says.
TEST(Matrices, AttentionThatIsSeen) {
  const auto seen = [](Net& net, ValueId scores) {
    net.output(scores);
    return scores;
  };
  Net net(12);
  net.output(attended(net, {40, 1, 16, 2, 0.5, seen}));
  const auto dispatches = compiled(net.graph, coopmat, shaders::Precision::fp16).tiers.at(0).dispatches;
  EXPECT_EQ(std::ranges::count(dispatches, "attention", &vulkan_program::Dispatch::kernel), 0);
  expect_computed(net, {4e-3, 4e-3}, true, shaders::Precision::fp16);
}

// Of the module of a product, in which `change` has changed an instruction.
std::string said_of(const std::function<bool(Opcode op, Word* operands)>& change) {
  static const vulkan_program::Program program = compiled(layer(8, 16, 17, 1, 1, DType::f16).graph, coopmat);
  return said_of_changed(program.tiers.at(0), change);
}

TEST(Matrices, LiesAreFound) {
  const auto find = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  // Memory that is too small for the last row.
  Word array_size = 0, other_index = 0;
  std::string said = said_of([&](Opcode op, Word* o) {
    if (op == Opcode::type_array && array_size == 0) array_size = o[2];  // then come the push constants
    return false;
  });
  said = said_of([&](Opcode op, Word* o) {
    if (op != Opcode::constant || o[1] != array_size) return false;
    o[2] /= 2;
    return true;
  });
  EXPECT_TRUE(find(said, "outside")) << said;
  // A product of two left factors.
  said = said_of([&](Opcode op, Word* o) {
    if (op == Opcode::cooperative_matrix_mul_add) return o[3] = o[2], true;
    return false;
  });
  EXPECT_TRUE(find(said, "an operand of another type")) << said;
  // Matrices of another size.
  said = said_of([&](Opcode op, Word* o) {
    if (op == Opcode::type_cooperative_matrix) return o[3] = o[2], true;
    return false;
  });
  EXPECT_TRUE(find(said, "a matrix of another size")) << said;
  // A stride that is no constant.
  said = said_of([&](Opcode op, Word* o) {
    if (op == Opcode::access_chain) other_index = o[3];
    if (op == Opcode::cooperative_matrix_load) return o[4] = other_index, true;
    return false;
  });
  EXPECT_TRUE(find(said, "rows of a matrix")) << said;
  // A loop whose body is to be written out and is not.
  said = said_of([&](Opcode op, Word* o) {
    if (op == Opcode::loop_merge) return o[2] = 3, true;
    return false;
  });
  EXPECT_TRUE(find(said, "a loop with other hints")) << said;
}

}  // namespace
}  // namespace tosaic::test
