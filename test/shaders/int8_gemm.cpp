// SPDX-License-Identifier: Apache-2.0
// Int8 x int8 GEMMs on each tier: quantised values that are given, and activations that are quantised at run time.
#include "formats/spirv/compute/run_shader.h"
#include "shaders/heads.h"
#include "shaders/on_device.h"

namespace tosaic::test {
namespace {

using vulkan_program::Program;

class Int8Gemm : public testing::Test {
 protected:
  void SetUp() override {
    if (without_vulkan()) GTEST_SKIP() << no_device;
  }
};

struct Weight {
  std::int64_t rows, depth, group;
  double least = -8, most = 7;
};

ValueId weight(Net& net, const Weight& w) {
  const ValueId int8_values = net.constant(DType::i8, {w.rows, w.depth / w.group, w.group}, w.least, w.most);
  const ValueId scales = net.constant(DType::f32, {w.rows, w.depth / w.group, 1}, 0.01, 0.1);
  return shaped(net, product(net, net.node("cast", {int8_values}, {}, DType::f32), scales), {w.rows, w.depth});
}

ValueId linear(Net& net, ValueId x, ValueId w) {
  const Shape &in = net.graph[x].type.shape, &by = net.graph[w].type.shape;
  const std::int64_t rows = in.elements() / by.size(1);
  const ValueId four = shaped(net, x, {1, 1, rows, by.size(1)}),
                kernel = shaped(net, w, {by.size(0), 1, 1, by.size(1)}), none = net.zero(DType::f32);
  const ValueId v = net.node("conv2d", {four, kernel, net.constant(DType::f32, {by.size(0)}, -1, 1), none, none},
                             steps({0, 0, 0, 0}, {1, 1}, DType::f32));
  return shaped(net, v, {rows, by.size(0)});
}

ValueId number(Net& net, double x) { return net.constant(DType::f32, {1, 1}, x, x); }
ValueId clamped(Net& net, ValueId x, double least, double most) {
  return net.node("clamp", {x}, {{"min_val", least}, {"max_val", most}, {"nan_mode", std::string("propagate")}});
}
ValueId whole(Net& net, ValueId x) { return net.node("cast", {net.node("cast", {x}, {}, DType::i32)}, {}, DType::f32); }
ValueId reduced(Net& net, const char* op, ValueId x) {
  Attrs attrs{{"axis", std::int64_t{1}}};
  if (std::string_view(op) != "reduce_sum") attrs.set("nan_mode", std::string("propagate"));
  return net.node(op, {x}, attrs);
}

// Rows of x as quantised values, as --quantize dynamic-int8 says them (asymmetric), and what they stand for.
struct Quantised {
  ValueId int8_values, scale, real;
};
Quantised quantised(Net& net, ValueId x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const ValueId least = clamped(net, reduced(net, "reduce_min", x), -infinity, 0),
                most = clamped(net, reduced(net, "reduce_max", x), 0, infinity);
  const ValueId scale =
      clamped(net, product(net, net.node("sub", {most, least}), number(net, 1.0 / 255)), 1e-7, infinity);
  const ValueId per = net.node("reciprocal", {scale});
  const ValueId beyond = net.node("sub", {number(net, -128), whole(net, product(net, least, per))});
  const ValueId zero =
      net.node("cast", {net.node("cast", {clamped(net, beyond, -128, 127)}, {}, DType::i8)}, {}, DType::f32);
  const ValueId moved = net.node("add", {whole(net, product(net, x, per)), zero});
  const ValueId int8_values = net.node("cast", {clamped(net, moved, -128, 127)}, {}, DType::i8);
  return {int8_values, scale,
          product(net, net.node("sub", {net.node("cast", {int8_values}, {}, DType::f32), zero}), scale)};
}

ValueId layer_norm(Net& net, ValueId x) {
  const double size = static_cast<double>(net.graph[x].type.shape.size(1));
  const ValueId mean = product(net, reduced(net, "reduce_sum", x), number(net, 1 / size));
  const ValueId centred = net.node("sub", {x, mean});
  const ValueId variance =
      product(net, reduced(net, "reduce_sum", product(net, centred, centred)), number(net, 1 / size));
  const ValueId by = net.node("rsqrt", {net.node("add", {variance, number(net, 1e-5)})});
  return product(net, product(net, centred, by),
                 net.constant(DType::f32, {1, net.graph[x].type.shape.size(1)}, 0.5, 2));
}

// The kernels of each tier are these, and the driver's check knows what they are written in.
void expect_kernels(const Net& net, const std::vector<std::string>& kernels) {
  for (const auto& tier : compiled(net.graph, every_tier()).tiers) {
    std::vector<std::string> made;
    for (const auto& dispatch : tier.dispatches) made.push_back(dispatch.kernel);
    EXPECT_EQ(made, kernels) << tier.name;
    for (const Bytes& code : tier.modules)
      EXPECT_TRUE(spirv::ShaderProgram::decode(code.as<spirv::Word>())) << tier.name << ": extend run_shader.cpp";
  }
}

// Of sizes that divide no tile, of groups that are parts of a step, several of them or neither; and of depths that are
// too long for sums in floats.
TEST_F(Int8Gemm, Products) {
  const Weight cases[] = {{33, 64, 32},
                          {128, 256, 64},
                          {40, 96, 48},
                          {20, 120, 120, -128, 127},
                          {17, 60, 12, -128, 127},
                          {64, 76, 76, -128, 127},
                          {12, 2304, 2304, -128, 127},
                          {12, 2304, 1152, -128, 127},
                          {18, 320, 16}};
  for (const Weight& w : cases)
    for (const std::int64_t rows : {1, 7, 21, 70})
      for (const bool counted : {true, false}) {
        SCOPED_TRACE(std::to_string(rows) + " rows by " + std::to_string(w.rows) + " of " + std::to_string(w.depth));
        Net net(static_cast<std::uint32_t>(rows));
        ValueId x = net.node("cast", {net.input(DType::i8, {rows, w.depth}, -128, 127)}, {}, DType::f32);
        if (counted)
          x = net.node("sub", {x, net.node("cast", {net.input(DType::i8, {rows, 1}, -128, 127)}, {}, DType::f32)});
        x = product(net, x, net.input(DType::f32, {rows, 1}, 0.001, 0.002));
        net.output(net.node("tanh", {linear(net, x, weight(net, w))}));
        if (counted)
          expect_kernels(net, {"elementwise", "conv2d"});  // the zero point as a float
        else
          expect_kernels(net, {"conv2d"});
        expect_on_device(net, {2e-5, 2e-5});
        if (HasFailure()) return;
      }
}

// Sums are those of integers, up to the largest that f32 holds.
TEST_F(Int8Gemm, SumsAreExact) {
  for (const std::int64_t rows : {3, 40})
    for (const int most : {7, 127}) {
      Net net(8);
      const ValueId int8_values = net.constant(DType::i8, {1, 1024, 36}, -most - 1, most), none = net.zero(DType::f32);
      const ValueId given = net.input(DType::i8, {1, rows, 1024}, -128, 127);
      net.output(net.node("matmul", {net.node("cast", {given}, {}, DType::f32),
                                     net.node("cast", {int8_values}, {}, DType::f32), none, none}));
      expect_kernels(net, {"matmul"});
      expect_on_device(net, {0, 0});
      net.inputs[0].data = net.elements(net.inputs[0].type, -128, -128);
      expect_on_device(net, {0, 0});
    }
}

// Rows that are quantised at run time, in one dispatch: quantised values and scales are those of the interpreter, bit
// for bit.
TEST_F(Int8Gemm, Rows) {
  for (const std::int64_t rows : {1, 5, 40})
    for (const std::int64_t depth : {8, 64, 260, 1024, 5000}) {
      SCOPED_TRACE(std::to_string(rows) + " of " + std::to_string(depth));
      Net net(static_cast<std::uint32_t>(rows + depth));
      const Quantised x = quantised(net, net.input(DType::f32, {rows, depth}, -1, 3));
      net.output(x.int8_values);
      net.output(x.scale);
      net.output(linear(net, x.real, weight(net, {16, depth, depth, -127, 127})));
      expect_kernels(net, {"codes", "conv2d"});
      expect_on_device(net, {2e-6, 1e-4});
      net.inputs[0].data = net.elements(net.inputs[0].type, 0, 0);  // whose scale is the least one
      expect_on_device(net, {2e-6, 1e-4});
      if (HasFailure()) return;
    }
}

// Symmetric, as torchao says it: the largest element of each row is 127.5 steps, a tie that the last bit of the
// reciprocal decides. Quantised values are those of the interpreter all the same.
TEST_F(Int8Gemm, Ties) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Net net(21);
  const ValueId x = net.input(DType::f32, {600, 64}, -3, 3);
  const ValueId size = net.node(
      "maximum", {net.node("sub", {number(net, 0), reduced(net, "reduce_min", x)}), reduced(net, "reduce_max", x)},
      {{"nan_mode", std::string("propagate")}});
  const ValueId scale = clamped(net, product(net, size, number(net, 1 / 127.5)), 1e-7, infinity);
  const ValueId steps = whole(net, product(net, x, net.node("reciprocal", {scale})));
  const ValueId int8_values = net.node("cast", {clamped(net, steps, -128, 127)}, {}, DType::i8);
  net.output(int8_values);
  const ValueId real = product(net, net.node("cast", {int8_values}, {}, DType::f32), scale);
  net.output(linear(net, real, weight(net, {8, 64, 64, -127, 127})));
  expect_kernels(net, {"codes", "conv2d"});
  expect_on_device(net, {2e-6, 1e-4});
}

// What rows are made of by reductions before is a part of it, however many products read them.
TEST_F(Int8Gemm, NormsAndSeveralProducts) {
  for (const std::int64_t rows : {1, 30}) {
    Net net(5);
    const ValueId x = net.input(DType::f32, {rows, 96}, -2, 2);
    const Quantised q = quantised(net, layer_norm(net, x));
    const ValueId a = net.node("sigmoid", {linear(net, q.real, weight(net, {48, 96, 32}))});
    const ValueId both = product(net, linear(net, q.real, weight(net, {48, 96, 32})), a);
    net.output(net.node("tanh", {linear(net, quantised(net, both).real, weight(net, {96, 48, 48, -127, 127}))}));
    expect_kernels(net, {"codes", "conv2d", "conv2d", "codes", "conv2d"});
    expect_on_device(net, {1e-3, 1e-3});  // a quantised value may be another one where floats before are
  }
}

// What others read of it as well is stored, too.
TEST_F(Int8Gemm, ReadByOthers) {
  Net net(11);
  const ValueId x = net.input(DType::f32, {6, 64}, -2, 2), normed = layer_norm(net, x);
  const Quantised q = quantised(net, normed);
  const ValueId y = linear(net, q.real, weight(net, {64, 64, 64, -127, 127}));
  net.output(net.node("add", {y, normed}));
  net.output(net.node("add", {q.real, x}));
  net.output(net.node("add", {product(net, q.scale, number(net, 2)), number(net, 1)}));
  expect_on_device(net, {1e-3, 1e-3});
}

// A table that is a layer's weight as well lies once in the payload.
TEST_F(Int8Gemm, TablesThatAreWeights) {
  for (const double most : {7, 127}) {
    Net net(4);
    const ValueId w = weight(net, {300, 128, 32, -most, most}), which = net.input(DType::i32, {1, 9}, 0, 299);
    const ValueId rows = net.node("gather", {shaped(net, w, {1, 300, 128}), which});
    net.output(rows);
    // Not of the rows themselves, whose scale makes ties of whole quantised values.
    const ValueId x = net.node("tanh", {shaped(net, rows, {9, 128})});
    net.output(linear(net, quantised(net, x).real, w));
    const double bytes = most < 8 ? 0.5 : 1;
    EXPECT_LT(static_cast<double>(compiled(net.graph, every_tier()).constants.size()),
              300 * 128 * bytes + 300 * 4 * 4 + 4096);
    expect_on_device(net, {1e-5, 1e-3});
  }
}

// As MATMUL has them, whose scales stand after the product.
TEST_F(Int8Gemm, ByColumns) {
  for (const std::int64_t rows : {2, 30}) {
    Net net(6);
    const ValueId int8_values = net.node("cast", {net.constant(DType::i8, {1, 128, 50}, -128, 127)}, {}, DType::f32);
    const ValueId none = net.zero(DType::f32), x = quantised(net, net.input(DType::f32, {rows, 128}, -1, 2)).real;
    const ValueId v = net.node("matmul", {shaped(net, x, {1, rows, 128}), int8_values, none, none});
    net.output(product(net, v, net.constant(DType::f32, {1, 1, 50}, 0.001, 0.01)));
    expect_kernels(net, {"codes", "matmul"});
    expect_on_device(net, {2e-5, 2e-5});
  }
}

// Activations are kept in 16 bits, scales of rows are not: those of these rows are below what 16 bits hold.
TEST_F(Int8Gemm, InHalfPrecision) {
  for (const std::int64_t rows : {2, 33}) {
    Net net(12);
    const Quantised x = quantised(net, net.input(DType::f32, {rows, 64}, -1e-6, 2e-6));
    const ValueId y = linear(net, x.real, weight(net, {32, 64, 32}));
    net.output(net.node("add", {y, number(net, 0)}));
    expect_on_device(net, {1e-6, 1e-9}, {}, shaders::Precision::fp16);
  }
  // Rows that are kept in 16 bits themselves: quantised values of the next step, perhaps, and of no others.
  Net net(14);
  const ValueId x =
      net.node("abs", {net.node("transpose", {net.input(DType::f32, {64, 24}, -1, 1)}, {{"perms", Sizes{1, 0}}})});
  net.output(linear(net, quantised(net, layer_norm(net, net.node("floor", {product(net, x, number(net, 200))}))).real,
                    weight(net, {32, 64, 64, -127, 127})));
  expect_on_device(net, {0.01, 1.0}, {}, shaders::Precision::fp16);
}

// Zero points that are no quantised values, groups that words do not divide, scales by element: floats, as ever.
TEST_F(Int8Gemm, Others) {
  for (int which = 0; which < 3; ++which) {
    SCOPED_TRACE(which);
    Net net(13);
    const std::int64_t group = which == 1 ? 6 : 24;
    ValueId x = net.node("cast", {net.input(DType::i8, {9, 48}, -128, 127)}, {}, DType::f32);
    if (which == 0) x = net.node("sub", {x, net.input(DType::f32, {9, 1}, -100, 100)});
    x = product(net, x, net.input(DType::f32, {9, which == 2 ? 48 : 1}, 0.001, 0.002));
    net.output(linear(net, x, weight(net, {20, 48, group, -127, 127})));
    expect_kernels(net, {"elementwise", "conv2d"});
    expect_on_device(net, {2e-5, 2e-5});
  }
}

}  // namespace
}  // namespace tosaic::test
