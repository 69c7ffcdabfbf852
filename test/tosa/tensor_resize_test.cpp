// SPDX-License-Identifier: Apache-2.0
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

struct Resize {
  Operand input;
  DType out;
  std::vector<double> scale = {2, 1, 2, 1}, offset = {0, 0}, border = {0, 0};
  std::string mode = "nearest";
  std::vector<TensorType> outputs = {};
  OneNode node() const {
    return {"resize", {input, dims(scale), dims(offset), dims(border)}, {{"mode", mode}}, outputs};
  }
};

TEST(Resize, NearestTakesTheCloser) {
  Resize r{in(i8, {1, 1, 3, 1}, {10, 20, 30}), i8, {1, 1, 2, 1}};
  EXPECT_EQ(r.node().inferred(), (TensorType{i8, {1, 1, 5, 1}, {}}));
  EXPECT_EQ(r.node().values(), (Doubles{10, 20, 20, 30, 30}));  // a half counts as closer to the next
  r.scale = {1, 1, 4, 2};                                       // the same scale
  EXPECT_EQ(r.node().values(), (Doubles{10, 20, 20, 30, 30}));
  // Half-pixel centres, twice as wide: positions -1/4, 1/4, 3/4, ...
  r.scale = {1, 1, 4, 2};
  r.offset = {0, -1};
  r.border = {0, 1};
  EXPECT_EQ(r.node().inferred().shape, (Shape{1, 1, 6, 1}));
  EXPECT_EQ(r.node().values(), (Doubles{10, 10, 20, 20, 30, 30}));
  r.input = in(f32, {1, 1, 3, 1}, {10, 20, 30});
  EXPECT_EQ(r.node().values(), (Doubles{10, 10, 20, 20, 30, 30}));
}

TEST(Resize, BilinearIntegersKeepTheirWeights) {
  Resize r{in(i8, {1, 2, 2, 1}, {0, 10, 20, 30}), i32, {2, 1, 2, 1}, {0, 0}, {0, 0}, "bilinear"};
  EXPECT_EQ(r.node().inferred(), (TensorType{i32, {1, 3, 3, 1}, {}}));
  // the mean of each point times 2 * 2
  EXPECT_EQ(r.node().values(), (Doubles{0, 20, 40, 40, 60, 80, 80, 100, 120}));
  r.input = in(i16, {1, 2, 2, 1}, {-32768, 32767, 32767, -32768});
  EXPECT_EQ(r.node().inferred().dtype, i48);
  EXPECT_EQ(r.node().values()[0], -131072);
}

TEST(Resize, BilinearFloats) {
  for (DType type : {f16, bf16, f32}) {
    Resize r{in(type, {1, 2, 2, 2}, {0, 1, 4, 3, 8, 5, 12, 7}), type, {2, 1, 2, 1}, {0, 0}, {0, 0}, "bilinear"};
    EXPECT_EQ(r.node().values(), (Doubles{0, 1, 2, 2, 4, 3, 4, 3, 6, 4, 8, 5, 8, 5, 10, 6, 12, 7})) << name_of(type);
  }
  Resize r{in(f32, {1, 1, 2, 1}, {0, 1}), f32, {1, 1, 6, 2}, {0, -2}, {0, 2}, "bilinear"};  // outside: the edge
  EXPECT_EQ(r.node().inferred().shape, (Shape{1, 1, 6, 1}));
  const Doubles v = r.node().values(true);
  EXPECT_EQ(v[0], 0);
  EXPECT_DOUBLE_EQ(v[2], 1.0 / 3);
  EXPECT_EQ(v[5], 1);
}

TEST(Resize, Downscale) {
  Resize r{in(i8, {1, 4, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), i8, {1, 3, 1, 3}};
  EXPECT_EQ(r.node().values(), (Doubles{1, 4, 13, 16}));
}

TEST(Resize, Rules) {
  auto label = [](auto change) {
    Resize r{in(i8, {1, 3, 3, 1}), i8};
    r.outputs = {r.node().inferred()};
    change(r);
    return r.node().verify();
  };
  EXPECT_EQ(label([](Resize&) {}), "");
  EXPECT_EQ(label([](Resize& r) { r.input = in(i8, {1, 16384, 3, 1}); }), "resize.size");
  EXPECT_EQ(label([](Resize& r) { r.outputs[0].shape = Shape{1, 5, 16384, 1}; }), "resize.size");
  EXPECT_EQ(label([](Resize& r) { r.scale[0] = 0; }), "resize.scale-positive");
  EXPECT_EQ(label([](Resize& r) { r.scale[3] = -1; }), "resize.scale-positive");
  EXPECT_EQ(label([](Resize& r) { r.scale[2] = 2049; }), "resize.scale-limit");
  EXPECT_EQ(label([](Resize& r) { r.scale[1] = 32; }), "resize.downscale");
  EXPECT_EQ(label([](Resize& r) { r.offset[0] = -3; }), "resize.offset");
  EXPECT_EQ(label([](Resize& r) { r.offset[1] = 32; }), "resize.offset");
  EXPECT_EQ(label([](Resize& r) { r.border[0] = -33; }), "resize.border");
  EXPECT_EQ(label([](Resize& r) { r.border[1] = 2; }), "resize.border");
  EXPECT_EQ(label([](Resize& r) { r.scale[1] = 3; }), "resize.output-size");
  EXPECT_EQ(label([](Resize& r) { r.outputs[0].shape = Shape{1, 5, 6, 1}; }), "resize.output-shape");
  EXPECT_EQ(label([](Resize& r) { r.scale = {2, 1, 2}; }), "resize.operand-length");
  EXPECT_EQ(label([](Resize& r) { r.border = {0}; }), "resize.operand-length");
  EXPECT_EQ(label([](Resize& r) { r.mode = "bilinear"; }), "resize.mode-type");
  EXPECT_EQ(label([](Resize& r) { r.outputs[0].dtype = i32; }), "resize.mode-type");
  EXPECT_EQ(label([](Resize& r) { r.outputs[0].dtype = i16; }), "resize.type");
}

TEST(Resize, Levels) {
  Resize r{in(i8, {1, 2, 2, 1}), i8, {257, 1, 1, 1}};
  EXPECT_EQ(r.node().verify(), "");
  EXPECT_EQ(r.node().verify(tosa::Spec({tosa::Feature::pro_int}, tosa::level_8k)), "resize.level-scale");
  r.scale = {512, 2, 1, 1};
  EXPECT_EQ(r.node().verify(tosa::Spec({tosa::Feature::pro_int}, tosa::level_8k)), "");
}

}  // namespace
}  // namespace tosaic
