// SPDX-License-Identifier: Apache-2.0
// CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D.
#include <array>
#include <random>

#include "ops/definitions/rest.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
using Ints = std::vector<std::int64_t>;

// What a test changes of an otherwise good convolution.
struct Conv {
  std::string op = "conv2d";
  Operand input, weight, bias;
  double input_zp = 0, weight_zp = 0;
  Ints pad = {0, 0, 0, 0}, stride = {1, 1}, dilation = {1, 1};
  DType acc = i32;
  std::vector<TensorType> outputs = {};

  OneNode node() const {
    Attrs attrs;
    attrs.set(op == "transpose_conv2d" ? "out_pad" : "pad", pad);
    attrs.set("stride", stride);
    if (op != "transpose_conv2d") attrs.set("dilation", dilation);
    attrs.set("acc_type", acc);
    attrs.set("local_bound", false);
    return {op,
            {input, weight, bias, constant(input.type.dtype, {1}, {input_zp}),
             constant(weight.type.dtype, {1}, {weight_zp})},
            attrs,
            outputs};
  }
};

Doubles counting(std::size_t n, double first = 1) {
  Doubles v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + static_cast<double>(i);
  return v;
}
Doubles random_codes(std::size_t n, unsigned seed, int lowest = -128, int highest = 127) {
  std::mt19937 random(seed);
  Doubles v(n);
  for (double& x : v)
    x = static_cast<double>(lowest + static_cast<int>(random() % static_cast<unsigned>(highest - lowest + 1)));
  return v;
}

TEST(Conv2d, ByHand) {
  // 3x3 image 1..9, 2x2 kernel of ones and one of which only the last tap counts.
  Conv c{.input = in(i8, {1, 3, 3, 1}, counting(9)),
         .weight = in(i8, {2, 2, 2, 1}, {1, 1, 1, 1, 0, 0, 0, 1}),
         .bias = in(i32, {2}, {10, 0})};
  EXPECT_EQ(c.node().inferred(), (TensorType{i32, {1, 2, 2, 2}, {}}));
  EXPECT_EQ(c.node().values(), (Doubles{22, 5, 26, 6, 34, 8, 38, 9}));
  c.bias = in(i32, {1}, {100});  // one bias for all channels
  EXPECT_EQ(c.node().values(), (Doubles{112, 105, 116, 106, 124, 108, 128, 109}));
  c.pad = {1, 0, 1, 0};
  c.stride = {2, 2};
  c.bias = in(i32, {1}, {0});
  EXPECT_EQ(c.node().values(), (Doubles{1, 1, 5, 3, 11, 7, 28, 9}));
  c.pad = {0, 0, 0, 0};
  c.stride = {1, 1};
  c.dilation = {2, 2};
  EXPECT_EQ(c.node().values(), (Doubles{20, 9}));
}

TEST(Conv2d, PaddingIsTheZeroPoint) {
  Conv c{.input = in(i8, {1, 1, 1, 1}, {5}),
         .weight = in(i8, {1, 3, 3, 1}, Doubles(9, 2)),
         .bias = in(i32, {1}, {0}),
         .input_zp = 3,
         .weight_zp = 1,
         .pad = {1, 1, 1, 1}};
  EXPECT_EQ(c.node().values(), Doubles{2});
}

TEST(Conv2d, EveryTypeOfTheTable) {
  auto one = [](DType x, DType w, DType b, DType acc) {
    return Conv{.input = in(x, {1, 1, 1, 2}, {3, -2}),
                .weight = in(w, {1, 1, 1, 2}, {4, 5}),
                .bias = in(b, {1}, {1}),
                .acc = acc};
  };
  for (auto [x, w, b, acc] : std::initializer_list<std::array<DType, 4>>{{i8, i8, i32, i32},
                                                                         {i8, i4, i32, i32},
                                                                         {i16, i8, i48, i48},
                                                                         {f8e4m3, f8e4m3, f16, f16},
                                                                         {f8e5m2, f8e5m2, f16, f16},
                                                                         {f16, f16, f16, f16},
                                                                         {f16, f16, f16, f32},
                                                                         {f32, f32, f32, f32},
                                                                         {bf16, bf16, bf16, f32}})
    EXPECT_EQ(one(x, w, b, acc).node().values(), Doubles{3}) << name_of(x) << name_of(w);
  EXPECT_EQ(one(i8, i16, i32, i32).node().verify(), "conv2d.type");
  EXPECT_EQ(one(i8, i8, i32, i48).node().verify(), "conv2d.type");
  EXPECT_EQ(one(i16, i8, i32, i48).node().verify(), "conv2d.type");
  EXPECT_EQ(one(i16, i8, i48, i48).node().verify({tosa::Feature::pro_int}), "conv2d.type");
  EXPECT_EQ(one(f16, f16, f16, f16).node().values(true), Doubles{3});
}

TEST(Conv2d, FloatsRoundOnce) {
  // In f16 steps 2048 + 1 would stay 2048 each time.
  Conv c{.input = in(f16, {1, 1, 1, 3}, {2048, 1, 1}),
         .weight = in(f16, {1, 1, 1, 3}, {1, 1, 1}),
         .bias = in(f16, {1}, {0}),
         .acc = f16};
  EXPECT_EQ(c.node().values(), Doubles{2050});
}

TEST(Conv2d, AccumulatorMustHold) {
  Conv c{
      .input = in(i8, {1, 1, 1, 1}, {100}), .weight = in(i8, {1, 1, 1, 1}, {100}), .bias = in(i32, {1}, {2147483647})};
  EXPECT_EQ(c.node().unpredictable(), "conv2d: a sum does not fit the accumulator's i32");
  c.bias = in(i32, {1}, {2147473647});
  EXPECT_EQ(c.node().values(), Doubles{2147483647});
  // 48 bits: exact well beyond what float or int32 sums could hold.
  Conv wide{.input = in(i16, {1, 1, 1, 2}, {-32768, 32767}),
            .weight = in(i8, {1, 1, 1, 2}, {-128, 127}),
            .bias = in(i48, {1}, {140737488355327.0 - 8355713.0}),
            .acc = i48};
  EXPECT_EQ(wide.node().values(), Doubles{140737488355327.0});
}

// The definition, one output element at a time, for 2 or 3 spatial axes (the first of 2-D being 1 throughout).
std::int64_t defined(const Conv& c, std::array<std::int64_t, 5> in_dims, std::array<std::int64_t, 5> w_dims,
                     std::array<std::int64_t, 5> at, const std::array<std::int64_t, 3>& before,
                     const std::array<std::int64_t, 3>& stride, const std::array<std::int64_t, 3>& dilation) {
  std::int64_t acc = 0;
  for (std::int64_t kz = 0; kz < w_dims[1]; ++kz)
    for (std::int64_t ky = 0; ky < w_dims[2]; ++ky)
      for (std::int64_t kx = 0; kx < w_dims[3]; ++kx)
        for (std::int64_t ic = 0; ic < in_dims[4]; ++ic) {
          const std::int64_t z = at[1] * stride[0] - before[0] + kz * dilation[0],
                             y = at[2] * stride[1] - before[1] + ky * dilation[1],
                             x = at[3] * stride[2] - before[2] + kx * dilation[2];
          if (z < 0 || z >= in_dims[1] || y < 0 || y >= in_dims[2] || x < 0 || x >= in_dims[3]) continue;
          const auto i = static_cast<std::size_t>(
              (((at[0] * in_dims[1] + z) * in_dims[2] + y) * in_dims[3] + x) * in_dims[4] + ic);
          const auto w =
              static_cast<std::size_t>((((at[4] * w_dims[1] + kz) * w_dims[2] + ky) * w_dims[3] + kx) * w_dims[4] + ic);
          acc += (static_cast<std::int64_t>(c.input.values[i]) - static_cast<std::int64_t>(c.input_zp)) *
                 (static_cast<std::int64_t>(c.weight.values[w]) - static_cast<std::int64_t>(c.weight_zp));
        }
  return acc +
         static_cast<std::int64_t>(c.bias.values[static_cast<std::size_t>(c.bias.values.size() == 1 ? 0 : at[4])]);
}

TEST(Conv3d, AgreesWithTheDefinition) {
  Conv c{.op = "conv3d",
         .input = in(i8, {2, 3, 5, 4, 3}, random_codes(360, 1)),
         .weight = in(i8, {4, 2, 3, 2, 3}, random_codes(144, 2)),
         .bias = in(i32, {4}, {1, -20, 300, -4000}),
         .input_zp = -7,
         .weight_zp = 2,
         .pad = {1, 0, 2, 1, 0, 1},
         .stride = {1, 2, 2},
         .dilation = {2, 1, 2}};
  // depth: (3 + 1 - 3)/1 + 1 = 2; height: (5 + 3 - 3) is odd with stride 2
  EXPECT_EQ(c.node().verify(), "conv3d.output-size");
  c.pad = {1, 0, 1, 1, 0, 1};
  ASSERT_EQ(c.node().verify(), "");
  const TensorType type = c.node().inferred();
  EXPECT_EQ(type, (TensorType{i32, {2, 2, 3, 2, 4}, {}}));
  const Doubles found = c.node().values();
  std::size_t i = 0;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t z = 0; z < 2; ++z)
      for (std::int64_t y = 0; y < 3; ++y)
        for (std::int64_t x = 0; x < 2; ++x)
          for (std::int64_t o = 0; o < 4; ++o)
            EXPECT_EQ(found.at(i++), static_cast<double>(defined(c, {2, 3, 5, 4, 3}, {4, 2, 3, 2, 3}, {n, z, y, x, o},
                                                                 {1, 1, 0}, {1, 2, 2}, {2, 1, 2})));
}

TEST(Conv2d, AgreesWithTheDefinition) {
  Conv c{.input = in(i16, {2, 6, 7, 3}, random_codes(252, 3, -32768, 32767)),
         .weight = in(i8, {5, 3, 2, 3}, random_codes(90, 4)),
         .bias = in(i48, {5}, random_codes(5, 5, -1000000, 1000000)),
         .weight_zp = -9,
         .pad = {1, 2, 0, 2},
         .stride = {2, 3},
         .dilation = {1, 2},
         .acc = i48};
  ASSERT_EQ(c.node().verify(), "");
  EXPECT_EQ(c.node().inferred(), (TensorType{i48, {2, 4, 3, 5}, {}}));
  const Doubles found = c.node().values();
  std::size_t i = 0;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t x = 0; x < 3; ++x)
        for (std::int64_t o = 0; o < 5; ++o)
          EXPECT_EQ(found.at(i++), static_cast<double>(defined(c, {2, 1, 6, 7, 3}, {5, 1, 3, 2, 3}, {n, 0, y, x, o},
                                                               {0, 1, 0}, {1, 2, 3}, {1, 1, 2})));
}

TEST(DepthwiseConv2d, ChannelsStayApart) {
  // Two channels, multiplier 2: channel 0 makes outputs 0 and 1, channel 1 outputs 2 and 3.
  Conv c{.op = "depthwise_conv2d",
         .input = in(i8, {1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}),
         .weight = in(i8, {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
         .bias = in(i32, {4}, {0, 0, 0, 1000})};
  EXPECT_EQ(c.node().inferred(), (TensorType{i32, {1, 1, 2, 4}, {}}));
  // column 0: channel 0 is (1, 3): 1*1+3*5, 1*2+3*6; channel 1 is (10, 30): 10*3+30*7, 10*4+30*8
  EXPECT_EQ(c.node().values(), (Doubles{16, 20, 240, 1280, 22, 28, 340, 1400}));
}

TEST(DepthwiseConv2d, PadStrideDilationAndZeroPoints) {
  Conv c{.op = "depthwise_conv2d",
         .input = in(i8, {1, 3, 3, 1}, counting(9)),
         .weight = in(i8, {2, 2, 1, 1}, {2, 3, 4, 5}),
         .bias = in(i32, {1}, {0}),
         .input_zp = 1,
         .weight_zp = 1,
         .pad = {1, 0, 1, 0},
         .stride = {2, 2},
         .dilation = {1, 1}};
  // input less 1 is 0..8, weights less 1 are 1..4
  EXPECT_EQ(c.node().values(), (Doubles{0, 3 * 1 + 4 * 2, 2 * 3 + 4 * 6, 1 * 4 + 2 * 5 + 3 * 7 + 4 * 8}));
}

TEST(TransposeConv2d, StampsTheKernel) {
  Conv c{.op = "transpose_conv2d",
         .input = in(i8, {1, 1, 2, 1}, {1, 10}),
         .weight = in(i8, {1, 1, 3, 1}, {1, 2, 3}),
         .bias = in(i32, {1}, {0})};
  EXPECT_EQ(c.node().inferred(), (TensorType{i32, {1, 1, 4, 1}, {}}));
  EXPECT_EQ(c.node().values(), (Doubles{1, 12, 23, 30}));
  c.stride = {1, 3};
  EXPECT_EQ(c.node().values(), (Doubles{1, 2, 3, 10, 20, 30}));
  c.pad = {0, 0, -1, 2};
  EXPECT_EQ(c.node().values(), (Doubles{2, 3, 10, 20, 30, 0, 0}));
  c.bias = in(i32, {1}, {5});
  c.input_zp = 1;
  EXPECT_EQ(c.node().values(), (Doubles{5, 5, 14, 23, 32, 5, 5}));
}

TEST(TransposeConv2d, SumsInputChannels) {
  Conv c{.op = "transpose_conv2d",
         .input = in(f32, {1, 1, 1, 2}, {2, 3}),
         .weight = in(f32, {2, 1, 1, 2}, {1, 10, 100, 1000}),
         .bias = in(f32, {2}, {0.5, 0}),
         .acc = f32};
  EXPECT_EQ(c.node().values(), (Doubles{32.5, 3200}));
}

Conv good(const std::string& op) {
  const bool depthwise = op == "depthwise_conv2d";
  if (op == "conv3d")
    return {.op = op,
            .input = in(i8, {1, 4, 4, 4, 2}),
            .weight = in(i8, {3, 2, 2, 2, 2}),
            .bias = in(i32, {3}),
            .pad = {0, 0, 0, 0, 0, 0},
            .stride = {1, 1, 1},
            .dilation = {1, 1, 1}};
  return {.op = op,
          .input = in(i8, {1, 4, 4, 2}),
          .weight = depthwise ? in(i8, {2, 2, 2, 3}) : in(i8, {3, 2, 2, 2}),
          .bias = in(i32, {depthwise ? 6 : 3})};
}

class Convolutions : public testing::TestWithParam<std::string> {
 public:
  const std::string op = GetParam();
  std::string broken(const Conv& c, const tosa::Spec& spec = tosa::Spec::everything()) const {
    const std::string label = c.node().verify(spec);
    return label.starts_with(op + ".") ? label.substr(op.size() + 1) : label;
  }
};
TEST_P(Convolutions, OperandRules) {
  Conv c = good(op);
  EXPECT_EQ(broken(c), "");
  c.input.type.dtype = i16;
  c.bias.type.dtype = i48;
  c.acc = i48;
  EXPECT_EQ(broken(c), "");
  c.input_zp = 1;
  EXPECT_EQ(broken(c), "input-zp");
  c = good(op);
  c.weight.type.dtype = i4;
  c.weight_zp = 1;
  EXPECT_EQ(broken(c), "weight-zp");
  c = good(op);
  c.bias = in(i32, {2});
  EXPECT_EQ(broken(c), "bias-size");
  c.bias = in(i32, {1});
  EXPECT_EQ(broken(c), "");
  c = good(op);
  c.input.type.shape.set(c.input.type.rank() - 1, 5);
  EXPECT_EQ(broken(c), "channels");
  c = good(op);
  c.outputs = {c.node().inferred()};
  c.outputs[0].shape.set(1, c.outputs[0].shape[1] + 1);
  EXPECT_EQ(broken(c), "output-shape");
  OneNode node = good(op).node();
  node.operands[3] = constant(i8, {2}, {0, 0});
  EXPECT_EQ(node.verify(), op + ".input-zp-size");
  node = good(op).node();
  node.operands[4] = in(i8, {1});
  EXPECT_EQ(node.verify(), "");  // EXT-DYNAMIC
  EXPECT_EQ(node.verify({tosa::Feature::pro_int}), op + ".constant");
}
TEST_P(Convolutions, WindowRules) {
  Conv c = good(op);
  c.stride.pop_back();
  EXPECT_EQ(broken(c), "attribute-length");
  c = good(op);
  c.pad.push_back(0);
  EXPECT_EQ(broken(c), "attribute-length");
  c = good(op);
  c.stride.back() = 0;
  c.outputs = {good(op).node().inferred()};
  EXPECT_EQ(broken(c), "stride");
  if (op == "transpose_conv2d") {
    EXPECT_EQ(c.node().verify(), "transpose_conv2d.stride");
    c = good(op);
    c.outputs = {c.node().inferred()};
    c.pad = {0, -2, 0, 0};
    EXPECT_EQ(c.node().verify(), "transpose_conv2d.out-pad");
    c.pad = {0, 0, -2, 0};
    EXPECT_EQ(c.node().verify(), "transpose_conv2d.out-pad");
    c.input = in(i8, {1, 1, 1, 2});
    c.weight = in(i8, {3, 5, 5, 2});
    c.pad = {-4, -4, 0, 0};
    EXPECT_EQ(c.node().verify(), "transpose_conv2d.output-size");
    return;
  }
  c = good(op);
  c.outputs = {c.node().inferred()};
  c.pad.back() = -1;
  EXPECT_EQ(broken(c), "pad");
  c = good(op);
  c.outputs = {c.node().inferred()};
  c.dilation[0] = 0;
  EXPECT_EQ(broken(c), "dilation");
  c = good(op);
  c.stride.back() = 2;  // the window moves by 4 - 2 = 2
  EXPECT_EQ(broken(c), "");
  c.pad.back() = 1;
  EXPECT_EQ(broken(c), "output-size");
  if (std::string(op) != "transpose_conv2d") {  // of a graph for many sizes, windows leave a rest
    tosa::Spec any_size = tosa::Spec::everything();
    any_size.add(tosa::sizes_vary);
    EXPECT_EQ(c.node().verify(any_size), "");
    c.pad.back() = -1;
    EXPECT_NE(c.node().verify(any_size), "");
  }
  c = good(op);
  c.dilation.back() = 4;
  c.outputs = {good(op).node().inferred()};
  EXPECT_EQ(broken(c), "output-size");
}
TEST_P(Convolutions, Levels) {
  tosa::Spec spec({tosa::Feature::pro_int}, tosa::level_8k);
  Conv c = good(op);
  EXPECT_EQ(broken(c, spec), "");
  c.pad[0] = 8194;
  c.pad[1] = 0;
  EXPECT_EQ(broken(c, spec), "level-pad");
  EXPECT_EQ(broken(c), "");
  c = good(op);
  c.stride.back() = 8193;
  if (op != "transpose_conv2d") {
    c.pad.back() = 8191;  // the window moves by 8193
    EXPECT_EQ(broken(c, spec), "level-stride");
    EXPECT_EQ(broken(c), "");
    c = good(op);
    c.dilation.back() = 4097;
    c.pad.back() = 4096;
    EXPECT_EQ(broken(c, spec), "level-kernel");
  } else {
    EXPECT_EQ(broken(c, spec), "level-stride");
    c = good(op);
    c.weight = in(i8, {3, 8193, 2, 2});
    EXPECT_EQ(broken(c, spec), "level-kernel");
  }
}
INSTANTIATE_TEST_SUITE_P(All, Convolutions, testing::Values("conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d"),
                         [](const auto& i) { return i.param; });

TEST(Conv2d, HugeSizesDoNotOverflow) {
  Conv c = good("conv2d");
  c.input = in(i8, {1, std::int64_t{1} << 40, 1, 2});
  c.outputs = {good("conv2d").node().inferred()};
  EXPECT_EQ(c.node().verify(), "conv2d.output-size");
  c = good("transpose_conv2d");
  c.stride = {2147483647, 1};
  c.input = in(i8, {1, std::int64_t{1} << 40, 1, 2});
  c.outputs = {good("conv2d").node().inferred()};
  EXPECT_EQ(c.node().verify(), "transpose_conv2d.output-size");
}

TEST(Conv2d, RowsMayBeSymbolicWhateverTheStrideLeaves) {
  Conv c = good("conv2d");
  const std::int64_t kernel = c.weight.type.shape.size(1);
  c.input.type.shape.set(1, Symbol{"h", {4, 40}});
  c.pad = {1, 1, 0, 0}, c.stride = {2, 1};
  const Dim rows = c.node().inferred().shape[1];
  for (std::int64_t h : {4, 5, 39})
    EXPECT_EQ(rows.with([&](const Symbol&) { return Dim(h); }), Dim((h + 2 - kernel) / 2 + 1)) << to_string(rows);
}

TEST(Conv2d, BatchMayBeSymbolic) {
  Conv c = good("conv2d");
  c.input.type.shape.set(0, Symbol{"s0", {1, 9}});
  EXPECT_EQ(to_string(c.node().inferred()), "(s0 in 1..9)x3x3x3xi32");
}

}  // namespace
}  // namespace tosaic
