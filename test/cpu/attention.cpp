// SPDX-License-Identifier: Apache-2.0
// Attention by its kernel, against its definition in TOSA: of every form, of sizes around those of panels and blocks,
// with keys as they lie and transposed.
#include <fmt/format.h>

#include <algorithm>

#include "cpu/net.h"
#include "ops/definitions/extension.h"

namespace tosaic::test {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr Tolerance near{2e-5, 2e-5};

struct Case {
  std::int64_t heads, rows, depth, keys, width;
  bool turned = false, biased = false, masked = false, safe = false;
  Shape mask = {1, 1, 1, 1};  // sizes of 1 broadcast; others are those of the scores

  std::string text() const {
    return fmt::format(
        "{} heads, {} rows, depth {}, {} keys, width {}, turned {}, biased {}, masked {} by [{}], safe {}", heads, rows,
        depth, keys, width, turned, biased, masked, to_string(mask), safe);
  }
};

void add(Net& net, const Case& c) {
  const ValueId query = net.input(DType::f32, {2 * c.heads, c.rows, c.depth}, -1, 1);
  ValueId key = net.input(DType::f32,
                          c.turned ? Shape{2 * c.heads, c.keys, c.depth} : Shape{2 * c.heads, c.depth, c.keys}, -2, 2);
  if (c.turned) key = net.node("transpose", {key}, {{"perms", Sizes{0, 2, 1}}});
  Node node{.op = extension::op::attention,
            .inputs = {query, key, net.input(DType::f32, {2 * c.heads, c.keys, c.width}, -1, 1)}};
  const Sizes scores{2, c.heads, c.rows, c.keys};
  node.attrs = {{extension::attention::scores, scores},
                {extension::attention::biased, c.biased},
                {extension::attention::masked, c.masked},
                {extension::softmax::safe, c.safe}};
  Sizes sizes = c.mask.sizes();
  sizes.back() = c.keys;
  if (c.biased) node.inputs.push_back(net.input(DType::f32, Shape(sizes), -3, 3));
  if (c.masked) {
    node.inputs.push_back(net.input(DType::boolean, Shape(sizes), 0, 1));
    std::vector<std::uint8_t> shown(static_cast<std::size_t>(Shape(sizes).elements()));
    for (std::size_t i = 0; i < shown.size(); ++i)
      shown[i] = net.integer(0, 2) > 0 || (!c.safe && static_cast<std::int64_t>(i) % c.keys == 0);
    net.inputs.back().data = Bytes::of(std::move(shown));
  }
  node.outputs = {net.graph.add_value("o", {DType::f32, {2 * c.heads, c.rows, c.width}, {}})};
  net.graph.nodes.push_back(node);
  const auto broken = extension::verify_node(tosa::View(net.graph, net.graph.nodes.back()));
  EXPECT_FALSE(broken) << broken->label << ": " << broken->message;
  net.output(node.outputs[0]);
}

void expect_attention(const Case& c, std::uint32_t seed) {
  Net net(seed);
  add(net, c);
  expect_as_interpreted(net, near, c.text(), "attention");
}

TEST(Attention, OfEverySize) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net random(seed);
    const Case c{.heads = random.integer(1, 3),
                 .rows = random.integer(16, 50),
                 .depth = random.integer(1, 40),
                 .keys = random.integer(1, 70),
                 .width = random.integer(1, 40),
                 .turned = seed % 2 == 1};
    expect_attention(c, seed);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Attention, OfEveryForm) {
  for (std::uint32_t form = 0; form < 32; ++form) {
    const std::int64_t rows = 17;
    const Case c{.heads = 3,
                 .rows = rows,
                 .depth = 9,
                 .keys = 21,
                 .width = 8,
                 .turned = form % 2 == 1,
                 .biased = form % 4 > 1,
                 .masked = form % 8 > 3,
                 .safe = form % 16 > 7,
                 .mask = form > 15 ? Shape{1, 3, rows, 21} : Shape{2, 1, 1, 21}};
    expect_attention(c, form);
  }
}

TEST(Attention, OfFewRowsByItsDefinition) {
  Net net;
  add(net, {.heads = 2, .rows = 1, .depth = 9, .keys = 21, .width = 8, .turned = true});
  expect_as_interpreted(net, near);
  const auto program = cpu::Program::compile(net.graph, {.threads = 1});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(std::ranges::count(program->kernels(), "attention"), 0);
}

// So many keys that a row's scores fill a block, and so many rows that there are several blocks of them, or tasks.
TEST(Attention, OfManyBlocks) {
  expect_attention({.heads = 1, .rows = 50, .depth = 8, .keys = 900, .width = 16, .turned = true}, 1);
  expect_attention({.heads = 1,
                    .rows = 101,
                    .depth = 8,
                    .keys = 333,
                    .width = 24,
                    .masked = true,
                    .safe = true,
                    .mask = {1, 1, 101, 333}},
                   2);
  expect_attention(
      {.heads = 1, .rows = 100, .depth = 3, .keys = 700, .width = 5, .biased = true, .mask = {2, 1, 100, 700}}, 3);
}

// However rows are shared out.
TEST(Attention, OfEveryNumberOfThreads) {
  const Case c{.heads = 1, .rows = 150, .depth = 16, .keys = 300, .width = 16, .turned = true};
  Bytes first;
  for (const int threads : {1, 2, 3}) {
    Net net;
    add(net, c);
    auto program = cpu::Program::compile(net.graph, {.threads = threads});
    ASSERT_TRUE(program.ok());
    const auto got = program->run(net.inputs);
    ASSERT_TRUE(got.ok());
    if (threads == 1) first = (*got)[0].data;
    EXPECT_TRUE((*got)[0].data == first) << threads << " threads";
  }
}

}  // namespace
}  // namespace tosaic::test
