// SPDX-License-Identifier: Apache-2.0
// Pools, reductions and operators that move elements, against the interpreter.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cpu/net.h"

namespace tosaic::test {
namespace {

using Ints = std::vector<std::int64_t>;

TEST(Pool, EveryKind) {
  for (std::uint32_t seed = 0; seed < 90; ++seed) {
    Net net(seed);
    const DType type = std::vector{DType::f32, DType::i8, DType::i16}[seed % 3];
    Ints kernel, pad, stride, size;
    for (int d = 0; d < 2; ++d) {
      const std::int64_t k = net.integer(1, 4), s = net.integer(1, 3), before = net.integer(0, k - 1),
                         after = net.integer(0, k - 1);
      std::int64_t in = (net.integer(1, 6) - 1) * s + k - before - after;
      while (in < 1) in += s;
      kernel.push_back(k);
      pad.insert(pad.end(), {before, after});
      stride.push_back(s);
      size.push_back(in);
    }
    const double range = type == DType::f32 ? 2 : 100;
    const ValueId x = net.input(type, {net.integer(1, 2), size[0], size[1], net.integer(1, 70)}, -range, range);
    Attrs attrs{{"kernel", kernel}, {"stride", stride}, {"pad", pad}};
    if (seed % 2) {
      attrs.set("acc_type", type == DType::f32 ? DType::f32 : DType::i32);
      const std::int64_t in_zp = type == DType::i8 ? net.integer(-128, 127) : 0,
                         out_zp = type == DType::i8 ? net.integer(-128, 127) : 0;
      net.output(net.node("avg_pool2d", {x, net.numbers(type, {in_zp}), net.numbers(type, {out_zp})}, attrs));
    } else {
      attrs.set("nan_mode", std::string("propagate"));
      net.output(net.node("max_pool2d", {x}, attrs));
    }
    expect_as_interpreted(net, {1e-6, 1e-6}, fmt::format("pool seed {}", seed), "pool");
    if (::testing::Test::HasFailure()) return;
  }
}

// Rows that are computed in several parts, and pixels of fewer elements than a vector, of one, and of many.
TEST(Pool, RowsOfManyPixels) {
  for (std::int64_t channels : {1, 3, 20, 65, 6000})
    for (std::int64_t stride : {1, 2, 5})
      for (const char* op : {"avg_pool2d", "max_pool2d"})
        for (DType type : {DType::f32, DType::i8}) {
          Net net(static_cast<std::uint32_t>(channels));
          const std::int64_t width = channels > 1000 ? 9 : 161;  // with the padding, whole strides and a window
          const ValueId x = net.input(type, {1, 4, width - (width - 1) % stride, channels}, -100, 100);
          Attrs attrs{{"kernel", Ints{3, 3}}, {"stride", Ints{1, stride}}, {"pad", Ints{1, 1, 1, 1}}};
          if (std::string(op) == "avg_pool2d") {
            attrs.set("acc_type", type == DType::f32 ? DType::f32 : DType::i32);
            const std::int64_t zp = type == DType::i8 ? 11 : 0;
            net.output(net.node(op, {x, net.numbers(type, {zp}), net.numbers(type, {-zp})}, attrs));
          } else {
            attrs.set("nan_mode", std::string("propagate"));
            net.output(net.node(op, {x}, attrs));
          }
          expect_as_interpreted(net, {1e-6, 1e-5},
                                fmt::format("{} of {} by {}, {}", op, channels, stride, name_of(type)), "pool");
          if (::testing::Test::HasFailure()) return;
        }
}

TEST(Pool, MaximaOfNaN) {
  for (const char* mode : {"propagate", "ignore"})
    for (std::int64_t channels : {2, 7, 40}) {
      Net net;
      const ValueId x = net.input(DType::f32, {1, 9, 9, channels}, -2, 2);
      std::vector<float> values(static_cast<std::size_t>(81 * channels));
      for (float& v : values) v = net.integer(0, 2) == 0 ? NAN : static_cast<float>(net.real(-2, 2));
      std::fill(values.begin(), values.begin() + 27 * channels, NAN);  // windows that have nothing else
      net.inputs[0].data = Bytes::of(values);
      net.output(net.node("max_pool2d", {x},
                          {{"kernel", Ints{3, 2}},
                           {"stride", Ints{1, 1}},
                           {"pad", Ints{0, 0, 0, 0}},
                           {"nan_mode", std::string(mode)}}));
      expect_as_interpreted(net, {}, mode, "pool");
    }
}

TEST(Reduction, EveryKindAlongEveryAxis) {
  std::uint32_t seed = 0;
  for (const tosa::Op& op : tosa::all()) {
    if (!op.name.starts_with("reduce_")) continue;
    for (const tosa::TypeRow& row : op.types) {
      const DType type = row.types[0].second;
      if (type == DType::f16 || type == DType::bf16 || storage_size(type) == 0) continue;
      for (const Shape& shape : {Shape{7, 6, 5}, Shape{1, 40, 300}, Shape{33}, Shape{2, 1, 3, 1}, Shape{3, 1000, 2}})
        for (int axis = 0; axis < shape.rank(); ++axis) {
          Net net(++seed);
          const bool product = op.name == "reduce_product";
          const double range = type == DType::boolean ? 1 : product ? 1.02 : 100;
          const ValueId x = net.input(type, shape, type == DType::boolean ? 0 : product ? 0.98 : -range, range);
          Attrs attrs{{"axis", std::int64_t{axis}}};
          if (op.name == "reduce_max" || op.name == "reduce_min") attrs.set("nan_mode", std::string("propagate"));
          net.output(net.node(std::string(op.name), {x}, attrs));
          expect_as_interpreted(net, {1e-4, 2e-3},
                                fmt::format("{} {} axis {} of {}", op.name, name_of(type), axis, to_string(shape)),
                                type == DType::i64 ? "reference" : "reduction");
          if (::testing::Test::HasFailure()) return;
        }
    }
  }
}

TEST(Layout, TransposesOfEveryOrder) {
  for (DType type : {DType::i8, DType::i16, DType::f32}) {
    Ints order{0, 1, 2, 3};
    do {
      Net net;
      const double range = 100;
      const ValueId x = net.input(type, {3, 17, 1, 40}, -range, range),
                    y = net.input(type, {2, 5, 19, 33}, -range, range);
      net.output(net.node("transpose", {x}, {{"perms", order}}));
      net.output(net.node("transpose", {y}, {{"perms", order}}));
      expect_as_interpreted(net, {}, fmt::format("transpose {}", to_string(Shape(order))), "layout");
    } while (std::next_permutation(order.begin(), order.end()));
  }
  Net large;
  large.output(
      large.node("transpose", {large.input(DType::f32, {1, 3, 130, 150}, -1, 1)}, {{"perms", Ints{0, 2, 3, 1}}}));
  large.output(
      large.node("transpose", {large.input(DType::f32, {1, 130, 150, 3}, -1, 1)}, {{"perms", Ints{0, 3, 1, 2}}}));
  expect_as_interpreted(large);
}

TEST(Layout, TransposesOfImages) {
  for (DType type : {DType::i8, DType::i16, DType::f32})
    for (const std::int64_t channels : {2, 3, 4, 5}) {
      Net net;
      const ValueId planes = net.input(type, {2, channels, 33, 67}, -100, 100),
                    pixels = net.input(type, {2, 33, 67, channels}, -100, 100);
      net.output(net.node("transpose", {planes}, {{"perms", Ints{0, 2, 3, 1}}}));
      net.output(net.node("transpose", {pixels}, {{"perms", Ints{0, 3, 1, 2}}}));
      expect_as_interpreted(net, {}, fmt::format("{} channels", channels), "layout");
    }
}

TEST(Layout, SlicePadTileReverseConcat) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const DType type = std::vector{DType::i8, DType::f32, DType::i16, DType::i32, DType::boolean}[seed % 5];
    const double lowest = type == DType::boolean ? 0 : -100, highest = type == DType::boolean ? 1 : 100;
    const Shape shape{net.integer(1, 3), net.integer(1, 9), net.integer(1, 40)};
    const ValueId x = net.input(type, shape, lowest, highest);
    Ints start, size, padding, multiples;
    for (std::int64_t dim : shape.sizes()) {
      start.push_back(net.integer(0, dim - 1));
      size.push_back(net.integer(1, dim - start.back()));
      padding.insert(padding.end(), {net.integer(0, 3), net.integer(0, 3)});
      multiples.push_back(net.integer(1, 3));
    }
    net.output(net.node("slice", {x, net.shape(start), net.shape(size)}));
    net.output(net.node("pad", {x, net.shape(padding), net.constant(type, {1}, lowest, highest)}));
    net.output(net.node("tile", {x, net.shape(multiples)}));
    net.output(net.node("reverse", {x}, {{"axis", net.integer(0, 2)}}));
    for (std::int64_t axis : {0, 1, 2})
      net.output(net.node("concat", {x, x, net.input(type, shape, lowest, highest)}, {{"axis", axis}}));
    expect_as_interpreted(net, {}, fmt::format("layout seed {}", seed), "layout");
    if (::testing::Test::HasFailure()) return;
  }
}

// The parts of a concat of outer pieces are computed where they end up, unless somebody has another claim on them.
TEST(Layout, ConcatInPlace) {
  Net net;
  const ValueId x = net.input(DType::f32, {1, 16, 16}, -1, 1);
  const ValueId a = net.node("exp", {x}), b = net.node("tanh", {x}),
                c = net.node("reshape", {x, net.shape({1, 16, 16})});
  const ValueId joined = net.node("concat", {a, b, c, a}, {{"axis", std::int64_t{1}}});
  const ValueId again = net.node("concat", {b, joined}, {{"axis", std::int64_t{1}}});
  net.output(net.node("abs", {again}));
  net.output(net.node("floor", {joined}));
  expect_as_interpreted(net, {1e-6, 1e-6});
}

TEST(Layout, Resize) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Net net(seed);
    const DType type = std::vector{DType::i8, DType::i16, DType::f32}[seed % 3];
    const bool linear = seed % 2;
    Ints scale, offset, border, size;
    for (int d = 0; d < 2; ++d) {
      const std::int64_t numerator = net.integer(1, 6), denominator = net.integer(1, 5), in = net.integer(1, 9);
      const std::int64_t first = net.integer(-numerator + 1, numerator);
      scale.insert(scale.end(), {numerator, denominator});
      offset.push_back(first);
      // (in - 1) * n - offset + border is a multiple of d, and not negative.
      std::int64_t last = -numerator + 1;
      while (last < numerator &&
             ((in - 1) * numerator - first + last < 0 || ((in - 1) * numerator - first + last) % denominator))
        ++last;
      border.push_back(last);
      size.push_back(last < numerator ? in : 0);
    }
    if (size[0] == 0 || size[1] == 0) continue;
    const ValueId x = net.input(type, {2, size[0], size[1], net.integer(1, 20)}, -100, 100);
    const DType out = !linear || type == DType::f32 ? type : type == DType::i8 ? DType::i32 : DType::i48;
    net.output(net.node("resize", {x, net.shape(scale), net.shape(offset), net.shape(border)},
                        {{"mode", std::string(linear ? "bilinear" : "nearest")}}, out));
    expect_as_interpreted(net, {1e-5, 1e-5}, fmt::format("resize seed {}", seed), "resize");
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Layout, Gather) {
  Net net;
  for (DType type : {DType::i8, DType::i16, DType::f32})
    net.output(net.node("gather", {net.input(type, {3, 11, 7}, -9, 9), net.input(DType::i32, {3, 20}, 0, 10)}));
  expect_as_interpreted(net, {}, "gather", "gather");
  Net outside;
  outside.output(
      outside.node("gather", {outside.input(DType::i8, {1, 4, 2}, 0, 9), outside.input(DType::i32, {1, 3}, 4, 4)}));
  auto program = cpu::Program::compile(outside.graph);
  ASSERT_TRUE(program.ok());
  const auto result = program->run(outside.inputs);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "tosa.unpredictable");
}

}  // namespace
}  // namespace tosaic::test
