// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

const Operand box = in(i8, {2, 3}, {1, 2, 3, 4, 5, 6});

Operand per_channel(Operand operand, int axis) {
  const auto n = static_cast<std::size_t>(operand.type.shape.size(axis));
  Scales scales{.scale = {}, .zero_point = std::vector<std::int64_t>(n, 0), .axis = axis};
  for (std::size_t i = 0; i < n; ++i) scales.scale.push_back(1.0 + static_cast<double>(i));
  operand.type.scales = scales;
  return operand;
}

TEST(Concat, JoinsAlongAnAxis) {
  const OneNode rows{"concat", {box, in(i8, {1, 3}, {7, 8, 9})}, {{"axis", std::int64_t{0}}}};
  EXPECT_EQ(rows.inferred(), (TensorType{i8, {3, 3}, std::nullopt}));
  EXPECT_EQ(rows.values(), (Doubles{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const OneNode columns{"concat", {box, in(i8, {2, 1}, {7, 8}), in(i8, {2, 1}, {9, 10})}, {{"axis", std::int64_t{1}}}};
  EXPECT_EQ(columns.values(), (Doubles{1, 2, 3, 7, 9, 4, 5, 6, 8, 10}));
  EXPECT_EQ((OneNode{"concat", {box}, {{"axis", std::int64_t{1}}}}).values(), box.values);
}

TEST(Concat, Rules) {
  const TensorType out{i8, {3, 3}, std::nullopt};
  EXPECT_EQ((OneNode{"concat", {}, {{"axis", std::int64_t{0}}}, {out}}).verify(), "concat.empty");
  EXPECT_EQ((OneNode{"concat", {box}, {{"axis", std::int64_t{2}}}, {out}}).verify(), "concat.axis");
  EXPECT_EQ((OneNode{"concat", {box, in(i8, {3})}, {{"axis", std::int64_t{0}}}, {out}}).verify(),
            "concat.rank-mismatch");
  EXPECT_EQ((OneNode{"concat", {box, in(i8, {1, 4})}, {{"axis", std::int64_t{0}}}, {out}}).verify(),
            "concat.dim-mismatch");
  EXPECT_EQ((OneNode{"concat", {box, box}, {{"axis", std::int64_t{0}}}, {out}}).verify(), "concat.output-shape");
  EXPECT_EQ((OneNode{"concat", {box, in(i32, {1, 3})}, {{"axis", std::int64_t{0}}}, {out}}).verify(), "concat.type");
  const OneNode i16s{"concat", {in(i16, {1})}, {{"axis", std::int64_t{0}}}};
  EXPECT_EQ(i16s.verify({tosa::Feature::pro_int}),
            "concat.type");  // needs EXT-INT16, unlike the other layout operators
  EXPECT_EQ(i16s.verify({tosa::Feature::pro_int, tosa::Feature::int16}), "");
}

TEST(Concat, AddsSymbols) {
  Operand dynamic = in(f32, {8});
  const Dim s0 = Symbol{"s0", {1, 8}};
  dynamic.type.shape.set(0, s0);
  const TensorType type = OneNode{"concat", {in(f32, {2}), dynamic}, {{"axis", std::int64_t{0}}}}.inferred();
  EXPECT_EQ(type.shape[0], s0 + 2);
}

TEST(Pad, SurroundsWithOneValue) {
  const OneNode node{"pad", {box, dims({1, 0, 0, 2}), constant(i8, {1}, {-9})}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {3, 5}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{-9, -9, -9, -9, -9, 1, 2, 3, -9, -9, 4, 5, 6, -9, -9}));
  EXPECT_EQ((OneNode{"pad", {in(f32, {1}, {2}), dims({1, 1}), constant(f32, {1}, {0.5})}}).values(true),
            (Doubles{0.5, 2, 0.5}));
}

TEST(Pad, Rules) {
  const TensorType out{i8, {2, 3}, std::nullopt};
  const Operand zero = constant(i8, {1}, {0});
  EXPECT_EQ((OneNode{"pad", {box, dims({0, 0, 0, -1}), zero}, {}, {out}}).verify(), "pad.negative");
  EXPECT_EQ((OneNode{"pad", {box, dims({0, 0, 0, 9e18}), zero}, {}, {out}}).verify(), "pad.too-large");
  EXPECT_EQ((OneNode{"pad", {box, dims({0, 0}), zero}, {}, {out}}).verify(), "pad.padding-length");
  EXPECT_EQ((OneNode{"pad", {box, dims({0, 0, 0, 0}), constant(i8, {2}, {0, 0})}, {}, {out}}).verify(),
            "pad.pad_const-length");
  EXPECT_EQ((OneNode{"pad", {box, dims({0, 0, 0, 1}), zero}, {}, {out}}).verify(), "pad.output-shape");
}

TEST(Reshape, KeepsTheElements) {
  EXPECT_EQ((OneNode{"reshape", {box, dims({3, 2})}}).values(), box.values);
  EXPECT_EQ((OneNode{"reshape", {in(f32, {1, 1}, {5}), dims({})}}).values(), Doubles{5});
  EXPECT_EQ((OneNode{"reshape", {in(f32, {}, {5}), dims({1, 1})}}).inferred(), (TensorType{f32, {1, 1}, std::nullopt}));
}

TEST(Reshape, Rules) {
  const TensorType out{i8, {2, 3}, std::nullopt};
  EXPECT_EQ((OneNode{"reshape", {box, dims({4, 2})}, {}, {out}}).verify(), "reshape.element-count");
  EXPECT_EQ((OneNode{"reshape", {box, dims({-1, 2})}, {}, {out}}).verify(), "reshape.shape-value");
  EXPECT_EQ((OneNode{"reshape", {box, dims({4e18, 4e18})}, {}, {out}}).verify(), "reshape.shape-value");
  EXPECT_EQ((OneNode{"reshape", {box, dims({3, 2})}, {}, {out}}).verify(), "reshape.output-shape");
  EXPECT_EQ((OneNode{"reshape", {box, in(shape, {2})}, {}, {out}}).verify({tosa::Feature::pro_int}),
            "reshape.constant");
}

TEST(Reverse, TurnsOneAxisRound) {
  EXPECT_EQ((OneNode{"reverse", {box}, {{"axis", std::int64_t{0}}}}).values(), (Doubles{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ((OneNode{"reverse", {box}, {{"axis", std::int64_t{1}}}}).values(), (Doubles{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ((OneNode{"reverse", {box}, {{"axis", std::int64_t{2}}}, {box.type}}).verify(), "reverse.axis");
}

TEST(Slice, CutsABox) {
  const OneNode node{"slice", {box, dims({0, 1}), dims({2, 2})}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {2, 2}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{2, 3, 5, 6}));
}

TEST(Slice, Rules) {
  const TensorType out{i8, {2, 2}, std::nullopt};
  EXPECT_EQ((OneNode{"slice", {box, dims({0, -1}), dims({2, 2})}, {}, {out}}).verify(), "slice.start");
  EXPECT_EQ((OneNode{"slice", {box, dims({0, 0}), dims({2, 0})}, {}, {out}}).verify(), "slice.size");
  EXPECT_EQ((OneNode{"slice", {box, dims({0, 2}), dims({2, 2})}, {}, {out}}).verify(), "slice.bounds");
  EXPECT_EQ((OneNode{"slice", {box, dims({0, 2}), dims({2, 9e18})}, {}, {out}}).verify(), "slice.bounds");
  EXPECT_EQ((OneNode{"slice", {box, dims({0}), dims({2, 2})}, {}, {out}}).verify(), "slice.start-length");
  EXPECT_EQ((OneNode{"slice", {box, dims({0, 0}), dims({2})}, {}, {out}}).verify(), "slice.size-length");
  EXPECT_EQ((OneNode{"slice", {box, dims({0, 0}), dims({2, 1})}, {}, {out}}).verify(), "slice.output-shape");
}

// EXT-DYNAMIC: what is known only at run time is held to the same rules, and cannot make eval leave its buffers.
TEST(Layout, OperandsThatAreKnownOnlyAtRunTime) {
  OneNode slice{"slice", {box, in(shape, {2}, {0, 2}), dims({2, 1})}};
  EXPECT_EQ(slice.values(), (Doubles{3, 6}));
  slice.operands[1].values = {0, 3};
  EXPECT_EQ(slice.run().error().code, "tosa.slice.bounds");
  OneNode pad{"pad", {box, in(shape, {4}, {0, 0, 1, 0}), constant(i8, {1}, {9})}, {}, {{i8, {2, 4}, std::nullopt}}};
  EXPECT_EQ(pad.values(), (Doubles{9, 1, 2, 3, 9, 4, 5, 6}));
  pad.operands[1].values = {0, 0, 1, 100};
  EXPECT_EQ(pad.run().error().code, "tosa.pad.output-shape");
  pad.operands[1].values = {-5, 5, 1, 0};
  EXPECT_EQ(pad.run().error().code, "tosa.pad.negative");
  OneNode reshape{"reshape", {box, in(shape, {2}, {3, 3})}, {}, {{i8, {3, 2}, std::nullopt}}};
  EXPECT_EQ(reshape.run().error().code, "tosa.reshape.element-count");
  OneNode tile{"tile", {box, in(shape, {2}, {1, 1})}, {}, {{i8, {2, 6}, std::nullopt}}};
  EXPECT_EQ(tile.run().error().code, "tosa.tile.output-shape");
}

TEST(Tile, Repeats) {
  const OneNode node{"tile", {in(i8, {1, 2}, {1, 2}), dims({2, 3})}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {2, 6}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ((OneNode{"tile", {box, dims({2, 1})}}).values(), (Doubles{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ((OneNode{"tile", {box, dims({0, 1})}, {}, {box.type}}).verify(), "tile.multiple");
  EXPECT_EQ((OneNode{"tile", {box, dims({1, 9e18})}, {}, {box.type}}).verify(), "tile.multiple");
  EXPECT_EQ((OneNode{"tile", {box, dims({1})}, {}, {box.type}}).verify(), "tile.multiples-length");
}

OneNode transpose(const Operand& x, std::vector<std::int64_t> perms) {
  return {"transpose", {x}, {{"perms", std::move(perms)}}};
}

TEST(Transpose, ReordersDims) {
  EXPECT_EQ(transpose(box, {1, 0}).values(), (Doubles{1, 4, 2, 5, 3, 6}));
  const OneNode node = transpose(in(i32, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), {2, 0, 1});
  EXPECT_EQ(node.inferred(), (TensorType{i32, {3, 1, 2}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{1, 4, 2, 5, 3, 6}));
}

// Planes of words go in vectors, other elements one by one.
TEST(Transpose, MovesWordsAsItMovesOthers) {
  const Shape shape{3, 17, 2, 19};
  std::vector<double> x(static_cast<std::size_t>(shape.elements()));
  std::iota(x.begin(), x.end(), 0);
  std::vector<std::int64_t> perms{0, 1, 2, 3};
  do EXPECT_EQ(transpose(in(f32, shape, x), perms).values(), transpose(in(i16, shape, x), perms).values());
  while (std::ranges::next_permutation(perms).found);
}

TEST(Transpose, Rules) {
  OneNode node{"transpose", {box}, {{"perms", std::vector<std::int64_t>{0}}}, {box.type}};
  EXPECT_EQ(node.verify(), "transpose.perms-length");
  node.attrs.set("perms", std::vector<std::int64_t>{0, 2});
  EXPECT_EQ(node.verify(), "transpose.perms-range");
  node.attrs.set("perms", std::vector<std::int64_t>{0, -1});
  EXPECT_EQ(node.verify(), "transpose.perms-range");
  node.attrs.set("perms", std::vector<std::int64_t>{1, 1});
  EXPECT_EQ(node.verify(), "transpose.perms-repeat");
  node.attrs.set("perms", std::vector<std::int64_t>{1, 0});
  EXPECT_EQ(node.verify(), "transpose.output-shape");
}

TEST(Layout, MovesEveryDType) {
  for (DType dtype : {boolean, i8, i16, i32, f16, bf16, f32, f8e4m3, f8e5m2})
    EXPECT_EQ(transpose(in(dtype, {2, 2}, {0, 1, 1, 0}), {1, 0}).values(), (Doubles{0, 1, 1, 0})) << name_of(dtype);
}

TEST(Layout, ScalesGoThrough) {
  Operand x = box;
  x.type.scales = Scales{};
  for (const OneNode& node :
       {OneNode{"reshape", {x, dims({6})}}, OneNode{"reverse", {x}, {{"axis", std::int64_t{0}}}},
        OneNode{"slice", {x, dims({0, 0}), dims({1, 1})}}, OneNode{"tile", {x, dims({2, 2})}}, transpose(x, {1, 0})}) {
    EXPECT_TRUE(tosa::find(node.op)->keeps_scales()) << node.op;
    EXPECT_EQ(node.inferred().scales, Scales{}) << node.op;
  }
  EXPECT_FALSE((OneNode{"concat", {x, x}, {{"axis", std::int64_t{0}}}}).inferred().quantised());
}

TEST(Layout, ChannelsOfScalesFollowTheElements) {
  const Operand x = per_channel(box, 1);  // scales 1, 2, 3
  EXPECT_EQ(transpose(x, {1, 0}).inferred().scales->axis, 0);
  EXPECT_EQ((OneNode{"reshape", {x, dims({6})}}).inferred().scales, std::nullopt);
  EXPECT_EQ((OneNode{"reverse", {x}, {{"axis", std::int64_t{1}}}}).inferred().scales->scale, (Doubles{3, 2, 1}));
  EXPECT_EQ((OneNode{"reverse", {x}, {{"axis", std::int64_t{0}}}}).inferred().scales->scale, (Doubles{1, 2, 3}));
  EXPECT_EQ((OneNode{"slice", {x, dims({0, 1}), dims({2, 2})}}).inferred().scales->scale, (Doubles{2, 3}));
  EXPECT_EQ((OneNode{"tile", {x, dims({1, 2})}}).inferred().scales->scale, (Doubles{1, 2, 3, 1, 2, 3}));
}

}  // namespace
}  // namespace tosaic
