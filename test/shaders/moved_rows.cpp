// SPDX-License-Identifier: Apache-2.0
// Rows that several data layout operators move are moved by one dispatch; windows and lines that are long.
#include "shaders/computed.h"
#include "shaders/heads.h"

namespace tosaic::test {
namespace {

constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};

std::vector<std::string> kernels_of(const Net& net) {
  std::vector<std::string> names;
  for (const auto& dispatch : compiled(net.graph, base).tiers.at(0).dispatches) names.push_back(dispatch.kernel);
  return names;
}

ValueId cut(Net& net, ValueId v, const Sizes& begin, const Sizes& size) {
  return net.node("slice", {v, net.shape(begin), net.shape(size)});
}

// Lines from `by` on, then those before.
ValueId rolled(Net& net, ValueId v, int axis, std::int64_t by) {
  const Sizes all = net.graph[v].type.shape.sizes();
  Sizes begin(all.size(), 0), size = all, other = all;
  const auto d = static_cast<std::size_t>(axis);
  begin[d] = by, size[d] = all[d] - by, other[d] = by;
  return net.node("concat", {cut(net, v, begin, size), cut(net, v, Sizes(all.size(), 0), other)},
                  {{"axis", std::int64_t{axis}}});
}

// Windows of 3x3 of an image that is rolled, and back with something added.
Net windows(DType type, std::int64_t channels) {
  Net net(3);
  const double most = is_float(type) ? 2 : 100;
  const ValueId x = net.input(type, {1, 6, 9, channels}, -most, most),
                y = net.input(type, {1, 54, channels}, -most, most);
  const ValueId moved = rolled(net, rolled(net, x, 1, 1), 2, 2),
                side_by_side = net.node("transpose", {shaped(net, moved, {1, 2, 3, 3, 3, channels})},
                                        {{"perms", Sizes{0, 1, 3, 2, 4, 5}}});
  const ValueId finished = net.node("abs", {shaped(net, side_by_side, {6, 9, channels})});
  net.output(finished);
  const ValueId back =
      net.node("transpose", {shaped(net, finished, {1, 2, 3, 3, 3, channels})}, {{"perms", Sizes{0, 1, 3, 2, 4, 5}}});
  if (is_float(type)) net.output(net.node("add", {y, shaped(net, back, {1, 54, channels})}));
  return net;
}

TEST(MovedRows, OfRolledWindows) {
  EXPECT_EQ(kernels_of(windows(DType::f32, 8)), (std::vector<std::string>{"gather", "gather"}));
  for (const DType type : {DType::f32, DType::f16, DType::i32}) expect_of_every_tier(windows(type, 8), {}, "windows");
}

// Each of them reads the one before twice: 2^60 ways to the beginning.
TEST(MovedRows, OfSixtyRolls) {
  Net net(7);
  ValueId v = net.input(DType::f32, {4, 8}, -1, 1);
  for (int i = 0; i < 60; ++i) v = rolled(net, v, 0, 1 + i % 3);
  net.output(net.node("abs", {v}));
  EXPECT_EQ(kernels_of(net), (std::vector<std::string>{"gather"}));
}

// Four neighbours become the channels of one; what is no whole row stays as it is.
TEST(MovedRows, NeighboursBecomeChannels) {
  for (const std::int64_t part : {8, 6}) {
    Net net(4);
    const ValueId x = net.input(DType::f32, {1, 8, 6, 8}, -1, 1);
    std::vector<ValueId> parts;
    for (const std::int64_t dx : {0, 1})
      for (const std::int64_t dy : {0, 1}) {
        const ValueId of_two = shaped(net, x, {1, 4, 2, 3, 2, 8});
        parts.push_back(shaped(net, cut(net, of_two, {0, 0, dy, 0, dx, 0}, {1, 4, 1, 3, 1, part}), {1, 4, 3, part}));
      }
    net.output(net.node("abs", {net.node("concat", parts, {{"axis", std::int64_t{3}}})}));
    const auto kernels = kernels_of(net);
    EXPECT_EQ(std::ranges::count(kernels, "gather"), part == 8 ? 1 : 0);
    expect_of_every_tier(net, {}, "neighbours");
  }
}

// A window of so many taps is read line by line.
TEST(MovedRows, LargeDepthwiseWindows) {
  for (const DType type : {DType::f16, DType::f32, DType::i8}) {
    Net net(5);
    const bool real = is_float(type);
    const double most = real ? 1 : 127;
    const ValueId x = net.input(type, {1, 11, 9, 12}, -most, most), w = net.constant(type, {6, 7, 12, 1}, -most, most),
                  b = net.constant(real ? type : DType::i32, {12}, -most, most),
                  zero = real ? net.zero(type) : net.numbers(type, {0});
    const ValueId x_zero = real ? zero : net.numbers(type, {-3});
    net.output(net.node("depthwise_conv2d", {x, w, b, x_zero, zero},
                        {{"pad", Sizes{3, 3, 3, 3}},
                         {"stride", Sizes{1, 2}},
                         {"dilation", Sizes{1, 1}},
                         {"acc_type", real ? DType::f32 : DType::i32},
                         {"local_bound", false}}));
    expect_of_every_tier(net,
                         type == DType::f16   ? Tolerance{2e-2, 2e-3}
                         : type == DType::f32 ? Tolerance{1e-5, 1e-5}
                                              : Tolerance{},
                         "depthwise");
  }
}

// Several elements at once, of which the last are fewer.
TEST(MovedRows, LongLines) {
  for (const std::int64_t size : {256, 257, 515, 1024, 1531})
    for (const std::int64_t inner : {1, 3, 12}) {
      Net net(6);
      const ValueId x = net.input(DType::f32, {2, size, inner}, -1, 1),
                    i = net.input(DType::i32, {2, size, inner}, -99, 99);
      net.output(net.node("reduce_sum", {x}, {{"axis", std::int64_t{1}}}));
      net.output(net.node("reduce_sum", {i}, {{"axis", std::int64_t{1}}}));
      net.output(net.node("reduce_min", {x}, {{"axis", std::int64_t{1}}, {"nan_mode", std::string("propagate")}}));
      expect_of_every_tier(net, {1e-4, 1e-5}, "lines");
    }
}

}  // namespace
}  // namespace tosaic::test
