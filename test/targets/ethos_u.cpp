// SPDX-License-Identifier: Apache-2.0
// What the products refuse, by label; and that the last rewrites keep every result.
#include "targets/ethos_u/products.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "base/diagnostic.h"
#include "interp/interp.h"
#include "targets/target.h"
#include "tidy/tidy.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

std::string refusal(const tosa::Product& product, const OneNode& node) {
  const Graph graph = node.graph();
  const auto broken = product.check(tosa::View(graph, graph.nodes[0]));
  return broken ? broken->label : "";
}

OneNode convolution(const std::string& op, Shape x, Shape weight, Ints stride, DType weights = DType::i8) {
  const std::int64_t channels = op == "conv2d" ? weight.size(0) : weight.size(2) * weight.size(3);
  const std::vector<double> ones(static_cast<std::size_t>(weight.elements()), 1);
  return {op,
          {in(DType::i8, x), constant(weights, weight, ones),
           constant(DType::i32, {channels}, std::vector<double>(channels, 0)), constant(DType::i8, {1}, {0}),
           constant(weights, {1}, {0})},
          {{"pad", Ints{0, 0, 0, 0}},
           {"stride", stride},
           {"dilation", Ints{1, 1}},
           {"acc_type", DType::i32},
           {"local_bound", false}}};
}

TEST(EthosU, convolutions) {
  const auto &u55 = ethos_u::u55(), &u85 = ethos_u::u85();
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 9, 9, 4}, {8, 3, 3, 4}, {2, 2})), "");
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 1, 4097, 4}, {8, 1, 4097, 4}, {1, 1})), "ethos-u.conv2d.kernel");
  EXPECT_EQ(refusal(u85, convolution("conv2d", {1, 1, 4097, 4}, {8, 1, 4097, 4}, {1, 1})), "ethos-u.conv2d.kernel");
  EXPECT_EQ(refusal(u55, convolution("conv2d", {1, 3, 3, 4}, {8, 1, 1, 4}, {1, 1}, DType::i4)),
            "ethos-u.conv2d.weights");
}

TEST(EthosU, what_only_u85_has) {
  for (const OneNode& node : {OneNode{"equal", {in(DType::i32, {4}), in(DType::i32, {4})}},
                              OneNode{"bitwise_and", {in(DType::i32, {4}), in(DType::i32, {4})}},
                              OneNode{"gather", {in(DType::i8, {1, 4, 2}), in(DType::i32, {1, 3})}}}) {
    EXPECT_EQ(refusal(ethos_u::u55(), node), "ethos-u." + node.op + ".operator");
    EXPECT_EQ(refusal(ethos_u::u65(), node), "ethos-u." + node.op + ".operator");
    EXPECT_EQ(refusal(ethos_u::u85(), node), "");
  }
}

TEST(EthosU, computed_weights_are_for_u85) {
  const auto node = [](bool computed) {
    OneNode conv = convolution("conv2d", {1, 9, 9, 4}, {8, 3, 3, 4}, {1, 1});
    if (computed) conv.operands[1] = in(DType::i8, {8, 3, 3, 4});
    return conv;
  };
  EXPECT_EQ(refusal(ethos_u::u55(), node(false)), "");
  EXPECT_EQ(refusal(ethos_u::u55(), node(true)), "ethos-u.conv2d.weights");
  EXPECT_EQ(refusal(ethos_u::u65(), node(true)), "ethos-u.conv2d.weights");
  EXPECT_EQ(refusal(ethos_u::u85(), node(true)), "");
}

TEST(EthosU, u85_counts_indices_in_16_bits) {
  const auto gather = [](std::int64_t batch, std::int64_t count) {
    return OneNode{"gather", {in(DType::i8, {batch, 4, 2}), in(DType::i32, {batch, count})}};
  };
  EXPECT_EQ(refusal(ethos_u::u85(), gather(2, 65535)), "");
  EXPECT_EQ(refusal(ethos_u::u85(), gather(1, 65536)), "ethos-u.gather.indices");
  EXPECT_EQ(refusal(ethos_u::u85(), gather(65536, 1)), "ethos-u.gather.indices");
}

TEST(EthosU, shifts_and_reductions) {
  const auto& u55 = ethos_u::u55();
  const auto shift = [&](bool round) {
    return OneNode{"arithmetic_right_shift", {in(DType::i32, {4}), in(DType::i32, {4})}, {{"round", round}}};
  };
  EXPECT_EQ(refusal(u55, shift(true)), "");
  EXPECT_EQ(refusal(u55, shift(false)), "ethos-u.arithmetic_right_shift.round");
  const auto argmax = [&](Shape shape, std::int64_t axis) {
    return OneNode{"argmax", {in(DType::i8, shape)}, {{"axis", axis}, {"nan_mode", std::string("propagate")}}};
  };
  EXPECT_EQ(refusal(u55, argmax({1, 4, 127}, 2)), "");
  EXPECT_EQ(refusal(u55, argmax({1, 4, 128}, 2)), "ethos-u.argmax.axis");
  EXPECT_EQ(refusal(u55, argmax({1, 4, 127}, 1)), "ethos-u.argmax.axis");
}

TEST(EthosU, resizing) {
  const auto resize = [](double n, double d, double offset, double border, std::string mode) {
    return OneNode{"resize",
                   {in(DType::i8, {1, 4, 4, 2}), dims({n, d, n, d}), dims({offset, offset}), dims({border, border})},
                   {{"mode", std::move(mode)}}};
  };
  EXPECT_EQ(refusal(ethos_u::u55(), resize(4, 2, -1, 1, "nearest")), "");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(3, 2, 0, 0, "nearest")), "ethos-u.resize.scale");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(4, 2, -1, 1, "bilinear")), "");
  EXPECT_EQ(refusal(ethos_u::u55(), resize(22, 3, 0, 0, "bilinear")), "ethos-u.resize.mode");
  EXPECT_EQ(refusal(ethos_u::u85(), resize(2, 1, -1, 0, "nearest")), "");
}

// Values that differ from place to place.
Tensor counted(const TensorType& type) {
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 37 + 11) % 251) - 125;
  return {type, constant_bytes(type.dtype, values)};
}

void expect_same_results(const std::string& text, void (*shape)(Graph&, const Rewrites&), std::size_t nodes) {
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << render(graph.error(), false);
  std::vector<Tensor> inputs;
  for (ValueId v : graph->inputs) inputs.push_back(counted((*graph)[v].type));
  const auto before = interp::run(*graph, inputs);
  ASSERT_TRUE(before.ok()) << render(before.error(), false);
  shape(*graph, {});
  EXPECT_EQ(graph->nodes.size(), nodes) << print(*graph);
  const auto sound = tosa::verify_graph(*graph, *tosa::Spec::parse("TOSA-1.0+INT+int16"));
  ASSERT_TRUE(sound.ok()) << render(sound.error(), false);
  const auto after = interp::run(*graph, inputs);
  ASSERT_TRUE(after.ok()) << render(after.error(), false);
  ASSERT_EQ(before->size(), after->size());
  for (std::size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ((*before)[i].type, (*after)[i].type);
    EXPECT_EQ((*before)[i].data, (*after)[i].data);
  }
}

TEST(EthosU, images_become_rows) {
  const std::string text = R"(graph @main(%x: 1x3x4x5xi8) -> (%y) {
    %y: 1x4x5x3xi8 = tosa.transpose(%x) {perms=[0, 2, 3, 1]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 3);
  expect_same_results(text, ethos_u::shape_for_u85, 1);
}

TEST(EthosU, images_of_a_batch_are_turned_one_by_one) {
  const std::string text = R"(graph @main(%x: 3x2x4x5xi8) -> (%y) {
    %y: 3x4x5x2xi8 = tosa.transpose(%x) {perms=[0, 2, 3, 1]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 1);
  expect_same_results(text, ethos_u::shape_for_u85, 7);
}

TEST(EthosU, maxima_run_along_the_width) {
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85})
    expect_same_results(R"(graph @main(%x: 2x3x4x5xi8) -> (%y) {
      %y: 2x3x4x1xi8 = tosa.reduce_max(%x) {axis=3, nan_mode="propagate"}
    })",
                        shape, 4);
}

TEST(EthosU, sums_along_neighbouring_axes_are_one) {
  const std::string mean = R"(graph @main(%x: 1x6x5x4xi32) -> (%y) {
    %w: 1x6x1x4xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x4xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  const std::string all = R"(graph @main(%x: 2x6x5x4xi32) -> (%y) {
    %a: 1x6x5x4xi32 = tosa.reduce_sum(%x) {axis=0}
    %b: 1x1x5x4xi32 = tosa.reduce_sum(%a) {axis=1}
    %c: 1x1x1x4xi32 = tosa.reduce_sum(%b) {axis=2}
    %y: 1x1x1x1xi32 = tosa.reduce_sum(%c) {axis=3}
  })";
  const std::string apart = R"(graph @main(%x: 2x6x5x4xi32) -> (%y) {
    %a: 1x6x5x4xi32 = tosa.reduce_sum(%x) {axis=0}
    %y: 1x6x1x4xi32 = tosa.reduce_sum(%a) {axis=2}
  })";
  const std::string seen = R"(graph @main(%x: 1x6x5x4xi32) -> (%w, %y) {
    %w: 1x6x1x4xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x4xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  const std::string long_axis = R"(graph @main(%x: 1x256x257x1xi32) -> (%y) {
    %w: 1x256x1x1xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x1xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    expect_same_results(mean, shape, 3);
    expect_same_results(all, shape, 5);  // two sums of two, views
    expect_same_results(apart, shape, 2);
    expect_same_results(seen, shape, 2);
    expect_same_results(long_axis, shape, 2);
  }
}

TEST(EthosU, packed_heads_are_cut_before_they_are_turned) {
  expect_same_results(R"(graph @main(%x: 1x5x24xi8) -> (%q, %k) {
    %s: 5xshape = constant [1, 5, 3, 4, 2]
    %h: 1x5x3x4x2xi8 = tosa.reshape(%x, %s)
    %t: 3x1x4x5x2xi8 = tosa.transpose(%h) {perms=[2, 0, 3, 1, 4]}
    %a: 5xshape = constant [0, 0, 0, 0, 0]
    %b: 5xshape = constant [1, 0, 0, 0, 0]
    %n: 5xshape = constant [1, 1, 4, 5, 2]
    %q: 1x1x4x5x2xi8 = tosa.slice(%t, %a, %n)
    %k: 1x1x4x5x2xi8 = tosa.slice(%t, %b, %n)
  })",
                      ethos_u::shape_for_u55, 10);
}

TEST(EthosU, windows_side_by_side_become_channels) {
  std::string weights;
  for (int i = 0; i < 3 * 4 * 4 * 2; ++i) weights += (i ? ", " : "") + std::to_string((i * 29) % 200 - 100);
  const std::string text = R"(graph @main(%x: 1x8x12x2xi8) -> (%y) {
    %w: 3x4x4x2xi8 = constant [)" +
                           weights + R"(]
    %b: 3xi32 = constant [5, -7, 100]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %y: 1x2x3x3xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=[0, 0, 0, 0], stride=[4, 4], dilation=[1, 1], acc_type=i32, local_bound=false}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) expect_same_results(text, shape, 7);
}

std::string codes(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string((i * 29) % 200 - 100);
  return text;
}

std::string strided(const std::string& x, const std::string& weight, int weights, const std::string& y,
                    const std::string& pad) {
  return "graph @main(%x: " + x + "xi8) -> (%y) {\n    %w: " + weight + "xi8 = constant [" + codes(weights) + R"(]
    %b: 3xi32 = constant [5, -7, 100]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %y: )" +
         y + "xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=" + pad +
         ", stride=[2, 2], dilation=[1, 1], acc_type=i32, local_bound=false}\n  }";
}

TEST(EthosU, columns_that_a_stride_skips_become_channels) {
  // A window that begins at an even column, at an odd one, and one that would not become cheaper.
  const std::string even = strided("1x7x8x3", "3x3x4x3", 108, "1x3x3x3", "[0, 0, 0, 0]");
  expect_same_results(even, ethos_u::shape_for_u55, 2);
  expect_same_results(strided("2x7x8x3", "3x3x3x3", 81, "2x4x4x3", "[1, 1, 1, 0]"), ethos_u::shape_for_u55, 2);
  expect_same_results(strided("1x7x8x8", "3x3x3x8", 216, "1x4x4x3", "[1, 1, 1, 0]"), ethos_u::shape_for_u55, 1);
  expect_same_results(even, ethos_u::shape_for_u85, 1);
}

TEST(EthosU, a_small_image_gives_its_rows_too) {
  std::string text = strided("1x49x10x1", "3x10x4x1", 120, "1x25x5x3", "[5, 4, 1, 1]");
  expect_same_results(text, ethos_u::shape_for_u55, 2);  // too few sums to pay for the copies
  text = strided("1x49x10x1", "40x10x4x1", 1600, "1x25x5x40", "[5, 4, 1, 1]");
  text.replace(text.find("3xi32 = constant [5, -7, 100]"), 29, "1xi32 = constant [5]");
  expect_same_results(text, ethos_u::shape_for_u55, 7);
}

const std::string rescaling =
    R"({scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false})";

// A 1x1 convolution, what is fused into it, and the mean over the image.
std::string mean_after_pointwise(const std::string& image, const std::string& kernel, const std::string& outputs) {
  return "graph @main(%x: 1x" + image + "x2xi8) -> (" + outputs + R"() {
    %w: 3x1x1x2xi8 = constant [100, -7, 33, 64, -128, 5]
    %b: 3xi32 = constant [5, -7, 100]
    %zero: 1xi8 = constant [0]
    %c: 1x)" +
         image +
         R"(x3xi32 = tosa.conv2d(%x, %w, %b, %zero, %zero) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    %m: 1xi32 = constant [1080000000]
    %s: 1xi8 = constant [37]
    %wide: 1xi32 = constant [0]
    %r: 1x)" +
         image + "x3xi8 = tosa.rescale(%c, %m, %s, %wide, %zero) " + rescaling + R"(
    %a: 1x)" +
         image + R"(x3xi8 = tosa.clamp(%r) {min_val=-3, max_val=90, nan_mode="propagate"}
    %y: 1x1x1x3xi8 = tosa.avg_pool2d(%a, %zero, %zero) {kernel=)" +
         kernel + R"(, stride=[1, 1], pad=[0, 0, 0, 0], acc_type=i32}
  })";
}

TEST(EthosU, an_image_with_odd_sides_is_a_row_before_its_mean) {
  const std::string odd = mean_after_pointwise("25x5", "[25, 5]", "%y");
  expect_same_results(odd, ethos_u::shape_for_small_u85, 5);
  expect_same_results(odd, ethos_u::shape_for_u85, 4);
  // Full micro-blocks, too few pixels, a window too long for a row, and an image that somebody else reads.
  for (const auto& [image, kernel, outputs] : std::vector<std::array<std::string, 3>>{{"14x14", "[14, 14]", "%y"},
                                                                                      {"7x7", "[7, 7]", "%y"},
                                                                                      {"63x5", "[63, 5]", "%y"},
                                                                                      {"25x5", "[25, 5]", "%y, %a"}})
    expect_same_results(mean_after_pointwise(image, kernel, outputs), ethos_u::shape_for_small_u85, 4);
}

TEST(EthosU, parts_of_a_packed_linear_are_convolutions) {
  std::string scaling = rescaling;
  scaling.replace(scaling.find("per_channel=false"), 17, "per_channel=true");
  const std::string text = R"(graph @main(%x: 1x1x5x4xi8) -> (%q, %k) {
    %w: 6x1x1x4xi8 = constant [)" +
                           codes(24) + R"(]
    %b: 6xi32 = constant [5, -7, 100, 3, 9, -80]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %c: 1x1x5x6xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    %m: 6xi32 = constant [1073741824, 1273741824, 1373741824, 1473741824, 1573741824, 1673741824]
    %s: 6xi8 = constant [37, 38, 37, 38, 37, 38]
    %zc: 1xi32 = constant [0]
    %p: 1x1x5x6xi8 = tosa.rescale(%c, %m, %s, %zc, %zx) )" +
                           scaling + R"(
    %a: 4xshape = constant [0, 0, 0, 0]
    %d: 4xshape = constant [0, 0, 0, 4]
    %n: 4xshape = constant [1, 1, 5, 4]
    %l: 4xshape = constant [1, 1, 5, 2]
    %f: 1x1x5x4xi8 = tosa.slice(%p, %a, %n)
    %g: 1x1x5x2xi8 = tosa.slice(%p, %d, %l)
    %q: 1x1x4x5xi8 = tosa.transpose(%f) {perms=[0, 1, 3, 2]}
    %k: 1x1x2x5xi8 = tosa.transpose(%g) {perms=[0, 1, 3, 2]}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) expect_same_results(text, shape, 6);
}

TEST(EthosU, a_constant_term_is_as_narrow_as_the_tensor) {
  const auto sum = [](const std::string& dtype, const std::string& shift, const std::string& constant) {
    return "graph @main(%x: 1x4x" + dtype + R"() -> (%y) {
    %m: 1xi32 = constant [1073741824]
    %s: 1xi8 = constant [)" +
           shift + R"(]
    %zi: 1x)" +
           dtype + R"( = constant [0]
    %zo: 1xi32 = constant [0]
    %w: 1x4xi32 = tosa.rescale(%x, %m, %s, %zi, %zo) )" +
           rescaling + "\n    %c: 1x4xi32 = constant [" + constant + "]\n    %y: 1x4xi32 = tosa.sub(%c, %w)\n  }";
  };
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    // 127, -126, 1 and -1 times 4099/4; 3, -1, 2 and 4 times 5/4; 32767, 5, -100 and -1 times 9/4.
    expect_same_results(sum("i8", "11", "130143, -129118, 1025, -1025"), shape, 3);
    expect_same_results(sum("i8", "11", "4, -1, 3, 5"), shape, 3);
    expect_same_results(sum("i16", "16", "73726, 11, -225, -2"), shape, 3);
    expect_same_results(sum("i8", "11", "130143, -129118, 1026, -1025"), shape, 2);  // more bits than 8
    expect_same_results(sum("i8", "12", "130143, -129118, 1025, -1025"), shape, 2);  // not the largest factor
  }
}

TEST(EthosU, every_reader_has_its_own_rescale) {
  expect_same_results(R"(graph @main(%x: 4xi8) -> (%y) {
    %m: 1xi32 = constant [1073741824]
    %s: 1xi8 = constant [30]
    %zi: 1xi8 = constant [3]
    %zo: 1xi32 = constant [0]
    %shift: 1xi8 = constant [0]
    %w: 4xi32 = tosa.rescale(%x, %m, %s, %zi, %zo) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %y: 4xi32 = tosa.mul(%w, %w, %shift)
  })",
                      ethos_u::shape_for_u55, 3);
}

// ---- what Vela would merge wrongly through a view stands apart

TEST(EthosU, an_activation_goes_before_a_view) {
  const std::string table = R"(graph @main(%x: 2x2x3x4xi8) -> (%y) {
    %m: 2x1x3x4xi8 = tosa.reduce_max(%x) {axis=1, nan_mode="propagate"}
    %s: 5xshape = constant [2, 1, 3, 2, 2]
    %v: 2x1x3x2x2xi8 = tosa.reshape(%m, %s)
    %y: 2x1x3x2x2xi8 = tosa.clamp(%v) {min_val=-5, max_val=7, nan_mode="propagate"}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_small_u55, ethos_u::shape_for_u85}) {
    auto graph = parse(table);
    ASSERT_TRUE(graph.ok());
    shape(*graph, {});
    for (const Node& node : graph->nodes)
      if (node.op == tosa::op::clamp) { EXPECT_EQ((*graph)[node.inputs[0]].type.shape.sizes(), (Ints{2, 3, 4})); }
    expect_same_results(table, shape, 4);
  }
}

TEST(EthosU, a_view_that_leaves_is_not_the_one_that_is_turned) {
  const std::string text = R"(graph @main(%x: 2x3x4xi8) -> (%v, %y) {
    %m: 2x3x4xi8 = tosa.clamp(%x) {min_val=-100, max_val=100, nan_mode="propagate"}
    %s: 4xshape = constant [1, 2, 3, 4]
    %v: 1x2x3x4xi8 = tosa.reshape(%m, %s)
    %y: 1x2x4x3xi8 = tosa.transpose(%v) {perms=[0, 1, 3, 2]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 4);
}

TEST(EthosU, a_minimum_is_a_maximum_on_u55) {
  const std::string text = R"(graph @main(%x: 1x2x3x4xi16) -> (%y) {
    %m: 1x2x1x4xi16 = tosa.reduce_min(%x) {axis=2, nan_mode="propagate"}
    %s: 2xshape = constant [2, 4]
    %y: 2x4xi16 = tosa.reshape(%m, %s)
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 10);
  expect_same_results(text, ethos_u::shape_for_u85, 2);
}

TEST(EthosU, chains_that_would_load_two_wide_tables_are_apart) {
  Ints entries(513);
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<std::int64_t>(i * i / 9);
  const auto list = [&] {
    std::string text;
    for (auto e : entries) text += (text.empty() ? "" : ", ") + std::to_string(e);
    return text;
  };
  const std::string first = list();
  entries[7] += 1;
  const std::string text = "graph @main(%x: 4x32xi16, %z: 4x32xi16) -> (%y) {\n  %ta: 513xi16 = constant [" + first +
                           "]\n  %tb: 513xi16 = constant [" + list() + R"(]
    %one: 1xi32 = constant [1073741824]
    %by7: 1xi8 = constant [37]
    %by0: 1xi8 = constant [30]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %a: 4x32xi32 = tosa.table(%x, %ta)
    %b: 4x32xi16 = tosa.rescale(%a, %one, %by7, %z32, %z16) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %c: 4x32xi32 = tosa.rescale(%b, %one, %by0, %z16, %z32) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %d: 4x32xi32 = tosa.rescale(%z, %one, %by0, %z16, %z32) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %e: 4x32xi32 = tosa.mul(%c, %d, %z8)
    %f: 4x32xi16 = tosa.rescale(%e, %one, %by16, %z32, %z16) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
    %g: 4x32xi32 = tosa.table(%f, %tb)
    %y: 4x32xi16 = tosa.rescale(%g, %one, %by7, %z32, %z16) {scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 8);
  expect_same_results(text, ethos_u::shape_for_u85, 11);  // two views, and one back at the end
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok());
  ethos_u::shape_for_u85(*graph);
  for (const Node& node : graph->nodes)
    if (node.op == tosa::op::mul) { EXPECT_EQ((*graph)[node.outputs[0]].type.shape.sizes(), (Ints{4, 1, 32})); }
}

// An int16 sum with a RESCALE and a CLAMP, then a MUL with columns 3 and on of a wider tensor: `view` stands behind the
// sum, `rank` and `dims` are what is computed in from there. `cut` makes the operand %p of the other input.
std::string a_sum_beside(const std::string& view, const std::string& summed, const std::string& z,
                         const std::string& dims, const std::string& cut) {
  const std::string how =
      R"({scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false})";
  return "graph @main(%x: 4x6x8xi16, %z: " + z + R"(xi16) -> (%y) {
    %one: 1xi32 = constant [1073741824]
    %by0: 1xi8 = constant [30]
    %by3: 1xi8 = constant [33]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %dims: )" +
         dims + R"(
    %w: 4x6x8xi32 = tosa.rescale(%x, %one, %by0, %z16, %z32) )" +
         how + R"(
    %s: 4x1x8xi32 = tosa.reduce_sum(%w) {axis=1}
)" + view +
         "    %n: " + summed + "xi16 = tosa.rescale(" + (view.empty() ? "%s" : "%v") + ", %one, %by3, %z32, %z16) " +
         how + "\n    %c: " + summed + "xi16 = tosa.clamp(%n) {min_val=0, max_val=32767, nan_mode=\"propagate\"}\n" +
         cut + "    %a: " + summed + "xi32 = tosa.rescale(%c, %one, %by0, %z16, %z32) " + how + "\n    %b: " + summed +
         "xi32 = tosa.rescale(%p, %one, %by0, %z16, %z32) " + how + "\n    %m: " + summed +
         "xi32 = tosa.mul(%a, %b, %z8)\n    %y: " + summed + "xi16 = tosa.rescale(%m, %one, %by16, %z32, %z16) " + how +
         "\n  }";
}

Ints shape_of_the(const std::string& op, const std::string& text) {
  auto graph = parse(text);
  if (!graph.ok()) return {};
  ethos_u::shape_for_u85(*graph);
  for (const Node& node : graph->nodes)
    if (node.op.name() == op) return (*graph)[node.outputs[0]].type.shape.sizes();
  return {};
}

// Narrowed and activated as the sum is written, the command behind the view is in no chain with it.
TEST(EthosU, activations_behind_a_view_and_a_rescale_stand_before_both) {
  const std::string text =
      a_sum_beside("    %v: 4x8xi32 = tosa.reshape(%s, %dims)\n", "4x8", "4x12", "2xshape = constant [4, 8]",
                   "    %at: 2xshape = constant [0, 3]\n    %p: 4x8xi16 = tosa.slice(%z, %at, %dims)\n");
  expect_same_results(text, ethos_u::shape_for_u55, 10);
  expect_same_results(text, ethos_u::shape_for_u85, 10);
  EXPECT_EQ(shape_of_the("tosa.clamp", text), (Ints{4, 1, 8}));
  EXPECT_EQ(shape_of_the("tosa.mul", text), (Ints{4, 8}));
}

TEST(EthosU, parts_of_tensors_are_no_operands_in_a_chain_of_another_shape) {
  const std::string part =
      a_sum_beside("", "4x1x8", "4x1x12", "3xshape = constant [4, 1, 8]",
                   "    %at: 3xshape = constant [0, 0, 3]\n    %p: 4x1x8xi16 = tosa.slice(%z, %at, %dims)\n");
  expect_same_results(part, ethos_u::shape_for_u55, 9);
  expect_same_results(part, ethos_u::shape_for_u85, 12);  // two views, and one back
  EXPECT_EQ(shape_of_the("tosa.mul", part), (Ints{1, 4, 8}));
}

// The part is no longer one behind the view, but stored in the dims that the chain is computed in.
TEST(EthosU, views_of_what_is_stored_are_no_operands_in_a_chain_of_another_shape) {
  const std::string view =
      a_sum_beside("", "4x1x8", "4x8x2", "3xshape = constant [4, 1, 8]",
                   "    %at: 3xshape = constant [0, 0, 1]\n    %size: 3xshape = constant [4, 8, 1]\n"
                   "    %q: 4x8x1xi16 = tosa.slice(%z, %at, %size)\n    %p: 4x1x8xi16 = tosa.reshape(%q, %dims)\n");
  expect_same_results(view, ethos_u::shape_for_u55, 10);
  expect_same_results(view, ethos_u::shape_for_u85, 12);  // the view that there is becomes the one that is needed
  EXPECT_EQ(shape_of_the("tosa.mul", view), (Ints{1, 4, 8}));
}

// Nothing has other dims there: the part is read where it lies.
TEST(EthosU, parts_of_tensors_stay_in_a_chain_of_their_shape) {
  const std::string how =
      R"({scale32=true, rounding_mode="single_round", per_channel=false, input_unsigned=false, output_unsigned=false})";
  const std::string text = R"(graph @main(%x: 4x8xi16, %w: 4x8xi16, %z: 4x12xi16) -> (%y) {
    %one: 1xi32 = constant [1073741824]
    %by0: 1xi8 = constant [30]
    %by16: 1xi8 = constant [46]
    %z16: 1xi16 = constant [0]
    %z32: 1xi32 = constant [0]
    %z8: 1xi8 = constant [0]
    %at: 2xshape = constant [0, 3]
    %dims: 2xshape = constant [4, 8]
    %a: 4x8xi32 = tosa.rescale(%x, %one, %by0, %z16, %z32) )" +
                           how + R"(
    %b: 4x8xi32 = tosa.rescale(%w, %one, %by0, %z16, %z32) )" +
                           how + R"(
    %m: 4x8xi32 = tosa.mul(%a, %b, %z8)
    %n: 4x8xi16 = tosa.rescale(%m, %one, %by16, %z32, %z16) )" +
                           how + R"(
    %c: 4x8xi16 = tosa.clamp(%n) {min_val=0, max_val=32767, nan_mode="propagate"}
    %p: 4x8xi16 = tosa.slice(%z, %at, %dims)
    %d: 4x8xi32 = tosa.rescale(%c, %one, %by0, %z16, %z32) )" +
                           how + R"(
    %e: 4x8xi32 = tosa.rescale(%p, %one, %by0, %z16, %z32) )" +
                           how + R"(
    %y: 4x8xi32 = tosa.add(%d, %e)
  })";
  expect_same_results(text, ethos_u::shape_for_u85, 9);
}

TEST(EthosU, slices_of_five_dims_are_cut_in_four) {
  const std::string text = R"(graph @main(%x: 1x4x5x6x8xi8) -> (%y) {
    %a: 5xshape = constant [0, 1, 0, 2, 0]
    %n: 5xshape = constant [1, 3, 4, 4, 8]
    %y: 1x3x4x4x8xi8 = tosa.slice(%x, %a, %n)
  })";
  const std::string four = R"(graph @main(%x: 3x4x5x6x8xi8) -> (%y) {
    %a: 5xshape = constant [1, 1, 0, 2, 3]
    %n: 5xshape = constant [2, 3, 4, 4, 5]
    %y: 2x3x4x4x5xi8 = tosa.slice(%x, %a, %n)
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    expect_same_results(text, shape, 3);
    expect_same_results(four, shape, 5);
  }
}

// Here the second transpose is one of dims that the view keeps, ones aside.
TEST(Tidy, transposes_meet_through_views_that_move_ones) {
  expect_same_results(R"(graph @main(%x: 1x4x1x40xi8) -> (%y) {
    %t: 1x40x1x4xi8 = tosa.transpose(%x) {perms=[0, 3, 2, 1]}
    %s: 4xshape = constant [1, 40, 2, 2]
    %v: 1x40x2x2xi8 = tosa.reshape(%t, %s)
    %y: 1x2x2x40xi8 = tosa.transpose(%v) {perms=[0, 2, 3, 1]}
  })",
                      [](Graph& graph, const Rewrites&) { tidy(graph); }, 1);
}

TEST(Targets, an_unknown_name_suggests_the_nearest) {
  auto found = find_target("ethos-u55-129", "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, "target.unknown");
  EXPECT_NE(found.error().help.find("ethos-u55-128"), std::string::npos) << found.error().help;
  EXPECT_EQ(found.error().help.find("tosa-fp"), std::string::npos) << found.error().help;
}

}  // namespace
}  // namespace tosaic
