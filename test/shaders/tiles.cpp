// SPDX-License-Identifier: Apache-2.0
// Products and windows whose sizes do not divide the tiles that they are computed in, on each tier of the device.
#include "formats/spirv/compute/check_shader.h"
#include "shaders/images.h"
#include "shaders/on_device.h"
#include "shaders/product_tile.h"

namespace tosaic::test {
namespace {

constexpr Tolerance of_floats{2e-5, 2e-5};
constexpr std::int64_t odd_sizes[] = {1, 3, 5, 17, 24, 49};

class Tiles : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

// What a layer is followed by; the third only of floats.
ValueId with_epilogue(Net& net, ValueId v, int which) {
  const TensorType type = net.graph[v].type;
  const bool real = is_float(type.dtype);
  switch (which % 3) {
    case 0: return v;
    case 1: return real ? net.node("tanh", {v}) : net.rescale(v, DType::i8, 38, 44, true, 0, 3);
    default:
      return net.node(
          "add", {v, real ? net.input(type.dtype, type.shape, -1, 1)
                          : net.constant(type.dtype, Shape(std::vector<std::int64_t>(type.shape.rank(), 1)), -9, 9)});
  }
}

// All in one program: drivers compile each shader once.
TEST_F(Tiles, Products) {
  Net net(1);
  int n = 0;
  for (std::int64_t rows : odd_sizes)
    for (std::int64_t columns : odd_sizes) {
      const std::int64_t depth = odd_sizes[n % 6] + (n % 5 == 0 ? 1000 : 0), batches = 1 + n % 3;
      const bool real = n % 2;
      const DType type = real ? DType::f32 : DType::i8;
      const double range = real ? 1 : 128, most = real ? 1 : 127;
      const ValueId a = net.input(type, {batches, rows, depth}, -range, most);
      const ValueId b = net.input(type, {batches, depth, columns}, -range, most);
      const ValueId v =
          net.node("matmul", {a, b, net.numbers(type, {real ? 0 : 11}), net.numbers(type, {real ? 0 : -7})});
      net.output(with_epilogue(net, v, n++));
    }
  expect_on_device(net, {2e-4, 2e-5});
}

struct Layer {
  std::int64_t batch, height, width, in, out;
  std::vector<std::int64_t> kernel, pad, stride, dilation;
};

void add_layer(Net& net, const Layer& l, bool depthwise, bool real, int tail, std::int64_t weight_zero = 5) {
  const DType type = real ? DType::f32 : DType::i8;
  const double range = real ? 1 : 128, most = real ? 1 : 127;
  const ValueId x = net.input(type, {l.batch, l.height, l.width, l.in}, -range, most);
  const ValueId w = net.constant(
      type, depthwise ? Shape{l.kernel[0], l.kernel[1], l.in, 1} : Shape{l.out, l.kernel[0], l.kernel[1], l.in}, -range,
      most);
  const DType sums = real ? DType::f32 : DType::i32;
  const ValueId b = net.constant(sums, {tail % 2 ? l.out : 1}, real ? -1 : -9000, real ? 1 : 9000);
  const ValueId v = net.node(
      depthwise ? "depthwise_conv2d" : "conv2d",
      {x, w, b, net.numbers(type, {real ? 0 : -100}), net.numbers(type, {real ? 0 : weight_zero})},
      {{"pad", l.pad}, {"stride", l.stride}, {"dilation", l.dilation}, {"acc_type", sums}, {"local_bound", false}});
  net.output(with_epilogue(net, v, tail));
}

using List = std::vector<std::int64_t>;

TEST_F(Tiles, Convolutions) {
  const List one{1, 1}, none{0, 0, 0, 0};
  const Layer layers[] = {
      {1, 1, 1, 1000, 17, one, none, one, one},
      {1, 1, 1, 24, 1000, one, none, one, one},
      {1, 7, 7, 24, 49, one, none, one, one},
      {3, 5, 17, 3, 24, one, none, {2, 4}, one},
      {2, 17, 5, 5, 3, {3, 3}, {1, 1, 1, 1}, one, one},
      {1, 17, 17, 3, 24, {7, 7}, {3, 2, 3, 2}, {2, 2}, one},
      {1, 17, 24, 4, 1, {3, 1}, {2, 2, 0, 0}, one, {2, 1}},
      {2, 9, 9, 49, 5, {2, 5}, {0, 1, 3, 5}, {1, 4}, {3, 2}},
      {1, 3, 3, 8, 16, {3, 3}, none, one, one},
      {1, 7, 7, 128, 20, {3, 3}, {1, 1, 1, 1}, one, one},  // its depth is divided among groups
      {1, 3, 5, 1100, 12, one, none, one, one},
  };
  Net net(2);
  int n = 0;
  for (const Layer& layer : layers)
    for (bool real : {true, false}) add_layer(net, layer, false, real, n++);
  expect_on_device(net, {2e-4, 2e-5});
}

// A tile of each height that there is: few sums, many, and so many that the widest tiles leave no processor idle.
TEST_F(Tiles, ProductsOfEveryTile) {
  const List one{1, 1}, none{0, 0, 0, 0};
  const struct {
    Layer layer;
    std::uint32_t rows, columns;
  } cases[] = {
      {{1, 1, 49, 256, 255, one, none, one, one}, 8, 8},   {{1, 28, 113, 40, 16, one, none, one, one}, 16, 16},
      {{1, 7, 28, 384, 386, one, none, one, one}, 16, 32}, {{1, 56, 56, 96, 96, one, none, one, one}, 32, 32},
      {{1, 14, 41, 96, 768, one, none, one, one}, 32, 64}, {{1, 112, 112, 16, 96, one, none, one, one}, 64, 64}};
  Net net(7);
  for (const auto& c : cases) {
    const Layer& l = c.layer;
    const auto tile = shaders::tile_for({1, l.height * l.width, l.out, l.in});
    EXPECT_EQ(std::pair(tile.rows, tile.columns), std::pair(c.rows, c.columns)) << l.height * l.width << " rows";
    add_layer(net, l, false, true, 1);
  }
  expect_on_device(net, {2e-4, 2e-5});
}

// The depth is divided where so many more groups are worth a second dispatch.
TEST(DividedProducts, AreDeepAndFew) {
  const shaders::ProductSize few{1, 197, 768, 3072}, many{1, 3136, 768, 3072}, shallow{1, 197, 768, 192};
  EXPECT_GT(shaders::divided(few, true).parts, 1);
  EXPECT_EQ(shaders::divided(few, false).parts, 1);
  EXPECT_EQ(shaders::divided(many, true).parts, 1);
  EXPECT_EQ(shaders::divided(shallow, true).parts, 1);
}

// Products of the same matrix, which a device computes at once, have wider tiles than one alone: fewer of them.
TEST(DividedProducts, SideBySideAreChosenAsOne) {
  const auto groups = [](int products) {
    Net net(8);
    const ValueId x = net.input(DType::f32, {1, 1, 198, 192}, -1, 1);
    for (int i = 0; i < products; ++i) net.output(plain(net, x, 192, {1, 1}, {0, 0, 0, 0}, {1, 1}));
    constexpr vulkan_program::TierId base[] = {vulkan_program::TierId::base};
    return compiled(net.graph, base).tiers.at(0).dispatches.at(0).groups[0];
  };
  EXPECT_LT(groups(3), groups(1));
}

// Over long depths.
TEST_F(Tiles, LongProducts) {
  const List one{1, 1}, none{0, 0, 0, 0};
  Net net(6);
  add_layer(net, {1, 13, 49, 515, 1299, one, none, one, one}, false, true, 1);
  add_layer(net, {1, 17, 45, 520, 2100, one, none, one, one}, false, true, 2);
  expect_on_device(net, {2e-4, 2e-5});
}

// Weights that count from 0, and channels by fours: what dot products of quantised values take.
TEST_F(Tiles, ConvolutionsOfCodes) {
  const List one{1, 1}, none{0, 0, 0, 0}, around{1, 1, 1, 1};
  const Layer layers[] = {
      {1, 1, 3, 4, 17, one, none, one, one},
      {1, 13, 9, 16, 24, one, none, one, one},
      {2, 12, 12, 64, 64, one, none, one, one},
      {2, 7, 7, 24, 49, one, none, one, one},
      {2, 17, 5, 12, 3, {3, 3}, around, one, one},
      {1, 17, 17, 20, 24, {7, 7}, {3, 2, 3, 2}, {2, 2}, one},
      {1, 17, 24, 32, 1, {3, 1}, {2, 2, 0, 0}, one, {2, 1}},
      {1, 7, 7, 512, 20, {3, 3}, around, one, one},  // its depth is divided among groups
      {1, 3, 5, 5000, 12, one, none, one, one},
  };
  Net net(5);
  int n = 0;
  for (const Layer& layer : layers) add_layer(net, layer, false, false, n++, 0);
  std::size_t with_dots = 0;
  constexpr vulkan_program::TierId dot[] = {vulkan_program::TierId::dot};
  const vulkan_program::Program program = compiled(net.graph, dot);
  for (const Bytes& m : program.tiers.at(0).modules) with_dots += spirv::check_shader(m.as<spirv::Word>())->dots;
  EXPECT_GE(with_dots, 5u);
  expect_on_device(net);
}

TEST_F(Tiles, DepthwiseConvolutions) {
  const Layer layers[] = {
      {1, 1, 1, 24, 24, {1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}},
      {2, 5, 17, 4, 4, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {1, 17, 49, 24, 24, {3, 3}, {1, 1, 1, 1}, {2, 2}, {1, 1}},
      {1, 9, 6, 8, 8, {5, 2}, {3, 1, 1, 2}, {1, 2}, {1, 3}},
      {3, 3, 3, 5, 5, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {1, 33, 33, 4, 4, {17, 16}, {0, 0, 0, 1}, {1, 1}, {1, 1}},  // more taps than floats sum exactly
  };
  Net net(3);
  int n = 0;
  for (const Layer& layer : layers)
    for (bool real : {true, false}) add_layer(net, layer, true, real, n++);
  expect_on_device(net, {2e-4, 2e-5});
}

// The largest sums that 8-bit numbers have: beyond 2^24, where not all integers are floats.
TEST_F(Tiles, SumsBeyondFloats) {
  Net net(1);
  for (std::int64_t depth : {256, 259, 1024, 5000}) {
    const ValueId a = net.input(DType::i8, {1, 3, depth}, -128, -128),
                  b = net.input(DType::i8, {1, depth, 5}, -127, -127);
    net.output(net.node("matmul", {a, b, net.numbers(DType::i8, {127}), net.numbers(DType::i8, {127})}));
    const ValueId x = net.input(DType::i8, {1, 2, 3, depth}, -128, -127),
                  w = net.constant(DType::i8, {3, 1, 1, depth}, -128, -127);
    net.output(net.node("conv2d",
                        {x, w, net.numbers(DType::i32, {7}), net.numbers(DType::i8, {127}), net.zero(DType::i8)},
                        {{"pad", List{0, 0, 0, 0}},
                         {"stride", List{1, 1}},
                         {"dilation", List{1, 1}},
                         {"acc_type", DType::i32},
                         {"local_bound", false}}));
  }
  expect_on_device(net);
}

// More groups than stand in a row of them.
TEST_F(Tiles, ManyGroups) {
  Net net(1);
  const ValueId x = net.input(DType::f32, {1, 1, 540000, 1}, -1, 1), w = net.constant(DType::f32, {3, 1, 1, 1}, -1, 1);
  net.output(net.node("conv2d",
                      {x, w, net.constant(DType::f32, {3}, -1, 1), net.zero(DType::f32), net.zero(DType::f32)},
                      {{"pad", List{0, 0, 0, 0}},
                       {"stride", List{1, 1}},
                       {"dilation", List{1, 1}},
                       {"acc_type", DType::f32},
                       {"local_bound", false}}));
  expect_on_device(net, of_floats);
}

TEST_F(Tiles, RowsOfEveryLength) {
  Net net(4);
  for (std::int64_t last : {1, 3, 4, 5, 17, 24, 49, 1000})
    for (DType type : {DType::f32, DType::i8}) {
      const bool real = is_float(type);
      const double low = real ? -1 : -128, high = real ? 1 : 127;
      const ValueId x = net.input(type, {2, 3, last}, low, high), row = net.constant(type, {1, 1, last}, low, high),
                    column = net.input(type, {2, 1, 1}, low, high);
      const auto widened = [&](ValueId v) { return real ? v : net.node("cast", {v}, {}, DType::i32); };
      const ValueId sum = net.node("add", {net.node("add", {widened(x), widened(row)}), widened(column)});
      net.output(sum);
      for (std::int64_t axis = 0; axis < 3; ++axis) {
        net.output(net.node("reduce_sum", {sum}, {{"axis", axis}}));
        net.output(net.node("reduce_max", {sum}, {{"axis", axis}, {"nan_mode", std::string("propagate")}}));
      }
      net.output(net.node("transpose", {x}, {{"perms", List{2, 0, 1}}}));
      net.output(net.node("concat", {x, net.input(type, {2, 3, 4}, low, high)}, {{"axis", std::int64_t{2}}}));
      net.output(net.node("pad", {x, net.shape({0, 1, 0, 0, 4, 3}), net.constant(type, {1}, 1, 1)}));
    }
  expect_on_device(net, of_floats);
}

}  // namespace
}  // namespace tosaic::test
