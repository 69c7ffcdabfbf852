// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels are one step, with what finishes them, as the interpreter computes them.
#include "cpu/channel_groups.h"

namespace tosaic::test {
namespace {

// Few groups and many, of few channels and many, by fours and not, out of more channels and fewer.
ChannelGroups random_groups(Net& net) {
  const std::int64_t channels[] = {1, 3, 4, 5, 8, 8, 12, 16, 24, 32, 33, 70};
  const auto side = [&] { return net.integer(0, 3) ? std::int64_t{3} : net.integer(1, 7); };
  ChannelGroups c{net.integer(1, 2),           0, 0, net.integer(2, 6), channels[net.integer(0, 11)],
                  channels[net.integer(0, 11)]};
  c.kernel = {side(), side()};
  c.stride = {net.integer(1, 2), net.integer(1, 2)};
  c.dilation = {net.integer(0, 3) ? 1 : 2, net.integer(0, 3) ? 1 : 2};
  c.pad = {net.integer(0, 3), net.integer(0, 3), net.integer(0, 3), net.integer(0, 3)};
  const auto size = [&](std::size_t d) {
    std::int64_t n =
        net.integer(0, 12) * c.stride[d] + 1 + (c.kernel[d] - 1) * c.dilation[d] - c.pad[2 * d] - c.pad[2 * d + 1];
    while (n < 1) n += c.stride[d];
    return n;
  };
  c.height = size(0);
  c.width = size(1);
  return c;
}

Attrs bounds(double low, double high) {
  return {{"min_val", low}, {"max_val", high}, {"nan_mode", std::string("propagate")}};
}
Attrs bounds(std::int64_t low, std::int64_t high) {
  return {{"min_val", low}, {"max_val", high}, {"nan_mode", std::string("propagate")}};
}

// One step; of patches or of lines.
void expect_one_step(const Net& net, const std::string& what, std::initializer_list<std::string_view> rows) {
  const auto program = cpu::Program::compile(net.graph);
  ASSERT_TRUE(program.ok()) << render(program.error(), false);
  ASSERT_EQ(program->kernels().size(), 1u) << what;
  EXPECT_TRUE(std::ranges::find(rows, program->kernels()[0]) != rows.end()) << what << program->kernels()[0];
}

TEST(GroupedConvolution, OfFloats) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Net net(seed);
    const ChannelGroups c = random_groups(net);
    ValueId v = convolved_groups(net, c, image_of_groups(net, c, DType::f32));
    switch (seed % 4) {
      case 0: break;
      case 1: v = net.node("clamp", {v}, bounds(-0.5, 2.0)); break;
      case 2: v = net.node("mul", {v, net.node("sigmoid", {v}), net.zero(DType::i8)}); break;
      default:
        v = net.node("clamp", {net.node("add", {v, net.input(DType::f32, net.graph[v].type.shape, -1, 1)})},
                     bounds(0.0, 6.0));
    }
    net.output(v);
    const std::string what = fmt::format("seed {}: {}", seed, c.text());
    expect_one_step(net, what, {"conv_lines", "conv_f32", "groups_f32"});
    expect_as_interpreted(net, {1e-5, 1e-4}, what);
    if (HasFailure()) return;
  }
}

TEST(GroupedConvolution, OfIntegers) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Net net(seed);
    const ChannelGroups c = random_groups(net);
    const bool each = seed % 3 != 0, per_channel = seed % 2 == 0;
    const auto rescaled = [&](ValueId v) { return net.rescale(v, DType::i8, 38, 44, per_channel, 0, 3); };
    ValueId v = convolved_groups(net, c, image_of_groups(net, c, DType::i8),
                                 each ? rescaled : std::function<ValueId(ValueId)>(),
                                 seed % 5 == 3 ? DType::i4 : DType::i8, seed % 4 == 1 && seed % 5 != 3 ? 7 : 0);
    if (!each && seed % 7 != 0) v = rescaled(v);
    if (net.graph[v].type.dtype == DType::i8) switch (seed % 5) {
        case 1: v = net.node("clamp", {v}, bounds(std::int64_t{-20}, std::int64_t{110})); break;
        case 2: v = net.node("table", {v, net.constant(DType::i8, {256}, -128, 127)}); break;
        case 4: {  // a residual sum
          const ValueId a = net.rescale(v, DType::i32, 11, 12, false, 7);
          const ValueId b =
              net.rescale(net.input(DType::i8, net.graph[v].type.shape, -128, 127), DType::i32, 11, 12, false, -4);
          v = net.rescale(net.node("add", {a, b}), DType::i8, 49, 50, false, 0, 1);
          break;
        }
        default: break;
      }
    net.output(v);
    const std::string what = fmt::format("seed {}: {}", seed, c.text());
    expect_one_step(net, what, {"conv_i8", "groups_i8"});
    expect_as_interpreted(net, {}, what);
    if (HasFailure()) return;
  }
}

// As many sums as channels, 4 or 8, in windows that go by columns: whole vectors of channels and not, more groups than
// a vector has and fewer.
ChannelGroups random_narrow_groups(Net& net) {
  const std::int64_t own = net.integer(0, 1) ? 4 : 8;
  ChannelGroups c{net.integer(1, 2), net.integer(1, 9), net.integer(1, 21), net.integer(16 / own, 14), own, own};
  c.stride = {net.integer(1, 3), net.integer(1, 2)};
  c.dilation = {net.integer(1, 2), 1};
  c.pad = {net.integer(1, 2), net.integer(1, 2), net.integer(0, 2), net.integer(0, 2)};
  const auto grown = [&](std::int64_t size, std::size_t d) {
    const std::int64_t around = c.pad[2 * d] + c.pad[2 * d + 1] - 2 * c.dilation[d] - 1;
    while (size + around < 0 || (size + around) % c.stride[d] != 0) ++size;
    return size;
  };
  c.height = grown(c.height, 0);
  c.width = grown(c.width, 1);
  return c;
}

TEST(GroupedConvolution, OfNarrowGroupsOfFloats) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const ChannelGroups c = random_narrow_groups(net);
    ValueId v = convolved_groups(net, c, image_of_groups(net, c, DType::f32));
    if (seed % 3 == 1) v = net.node("clamp", {v}, bounds(-0.5, 2.0));
    if (seed % 3 == 2) v = net.node("mul", {v, net.node("sigmoid", {v}), net.zero(DType::i8)});
    net.output(v);
    const std::string what = fmt::format("seed {}: {}", seed, c.text());
    expect_one_step(net, what, {"groups_f32", "conv_lines", "conv_f32"});  // the others with shorter vectors
    expect_as_interpreted(net, {1e-5, 1e-4}, what);
    if (HasFailure()) return;
  }
}

TEST(GroupedConvolution, OfNarrowGroupsOfIntegers) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const ChannelGroups c = random_narrow_groups(net);
    const std::int64_t weight_zero = seed % 5 == 4 ? 7 : 0;
    ValueId v = convolved_groups(
        net, c, image_of_groups(net, c, DType::i8),
        [&](ValueId sums) { return net.rescale(sums, DType::i8, 38, 44, seed % 3 != 0, 0, 3); }, DType::i8,
        weight_zero);
    if (seed % 4 == 1) v = net.node("clamp", {v}, bounds(std::int64_t{-20}, std::int64_t{110}));
    if (seed % 4 == 2) v = net.node("table", {v, net.constant(DType::i8, {256}, -128, 127)});
    net.output(v);
    const std::string what = fmt::format("seed {}: {}", seed, c.text());
    if (weight_zero == 0) expect_one_step(net, what, {"groups_i8"});
    expect_as_interpreted(net, {}, what);
    if (HasFailure()) return;
  }
}

// What has no kernel of groups, and what others see.
TEST(GroupedConvolution, WhatIsNone) {
  const ChannelGroups c{1, 5, 6, 3, 8, 8};
  Net wide(1);
  wide.output(convolved_groups(wide, c, image_of_groups(wide, c, DType::i16),
                               [&](ValueId v) { return wide.rescale(v, DType::i16, 30, 34, true); }));
  expect_as_interpreted(wide, {}, "i16");
  for (const std::size_t seen : {2u, 3u}) {
    Net net(2);
    const ValueId v = convolved_groups(net, c, image_of_groups(net, c, DType::f32));
    net.output(v);
    net.output(net.graph.nodes[seen].outputs[0]);
    const auto program = cpu::Program::compile(net.graph);
    ASSERT_TRUE(program.ok());
    EXPECT_GT(program->kernels().size(), 3u);
    expect_as_interpreted(net, {1e-5, 1e-4}, "seen");
  }
  // Also where an observer asks for it.
  Net net(3);
  net.output(convolved_groups(net, c, image_of_groups(net, c, DType::f32)));
  const std::vector<ValueId> observed{net.graph.nodes[3].outputs[0]};
  const auto program = cpu::Program::compile(net.graph, {.observed = observed});
  ASSERT_TRUE(program.ok());
  EXPECT_GT(program->kernels().size(), 3u);
}

}  // namespace
}  // namespace tosaic::test
