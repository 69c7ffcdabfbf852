// SPDX-License-Identifier: Apache-2.0
// Block-scaled tensors of the draft of TOSA 1.1: as they stand, in the operators of 1.0, and through a file. Against
// Arm's model: test/conformance/draft.py; against torchao: test/python/test_mxfp.py.
#include <cmath>
#include <random>

#include "formats/tosa/tosa_file.h"
#include "ops/definitions/block_scaled.h"
#include "ops/definitions/extension.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
using tosa::Spec;
using List = std::vector<double>;

constexpr std::array elements{f8e4m3, f8e5m2, f6e2m3, f6e3m2, f4e2m1, mxint8};
const Attrs blocks{{"block_size", std::int64_t{32}}};

std::vector<double> doubles(const Tensor& tensor) {
  List list(static_cast<std::size_t>(tensor.type.shape.elements()));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = element_as_double(tensor.type.dtype, tensor.data.data(), i);
  return list;
}

// A graph that is written call by call.
class Program {
 public:
  ValueId input(DType dtype, Shape shape) {
    graph_.inputs.push_back(
        graph_.add_value("x" + std::to_string(graph_.values.size()), {dtype, std::move(shape), {}}));
    return graph_.inputs.back();
  }
  ValueId constant(DType dtype, Shape shape, const List& values) {
    return graph_.add_value("c" + std::to_string(graph_.values.size()), {dtype, std::move(shape), {}},
                            constant_bytes(dtype, values));
  }
  ValueId shape(const List& sizes) { return constant(DType::shape, {std::ssize(sizes)}, sizes); }
  // `result`: the dtype of the first result.
  std::vector<ValueId> call(std::string_view op, std::vector<ValueId> operands, DType result) {
    Node node{Operator(fmt::format("tosa.{}", op)), std::move(operands), blocks, {}, nullptr, {}};
    node.outputs.push_back(graph_.add_value("", {result, {}, {}}));
    const auto types = tosa::find(node.op)->infer(tosa::View(graph_, node));
    graph_[node.outputs[0]].type = types[0];
    for (std::size_t i = 1; i < types.size(); ++i) node.outputs.push_back(graph_.add_value("", types[i]));
    for (const ValueId v : node.outputs) graph_[v].name = "v" + std::to_string(v);
    graph_.nodes.push_back(node);
    return node.outputs;
  }
  std::vector<ValueId> rounded(ValueId x, DType element) { return call("cast_to_block_scaled", {x}, element); }
  ValueId floats(const std::vector<ValueId>& tensor, DType to = f32) {
    return call("cast_from_block_scaled", {tensor[0], tensor[1]}, to)[0];
  }
  void output(ValueId v) { graph_.outputs.push_back(v); }

  // The result for these inputs, which is the same in TOSA 1.0 and from a file.
  List run(const std::vector<List>& values) const {
    const Status status = tosa::verify_graph(graph_, Spec::everything());
    if (!status.ok()) return ADD_FAILURE() << status.error().message, List{};
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const TensorType& type = graph_[graph_.inputs[i]].type;
      inputs.push_back({type, constant_bytes(type.dtype, values[i])});
    }
    const auto direct = interp::run(graph_, inputs);
    if (!direct.ok()) return ADD_FAILURE() << direct.error().message, List{};
    const List expected = doubles((*direct)[0]);
    const std::optional<Graph> older = extension::in_tosa_1_0(graph_);
    if (!older) return ADD_FAILURE() << "no definitions", List{};
    const Status holds = tosa::verify_graph(*older, Spec::everything_in_1_0());
    EXPECT_TRUE(holds.ok()) << holds.error().message;
    const auto file = tosa_file::write(graph_);
    if (!file.ok()) return ADD_FAILURE() << file.error().message, List{};
    const auto again = tosa_file::read(file->joined(), "again.tosa");
    if (!again.ok()) return ADD_FAILURE() << again.error().message, List{};
    for (const Graph* same : {&*older, &*again}) {
      const auto made = interp::run(*same, inputs);
      if (!made.ok()) return ADD_FAILURE() << made.error().message, List{};
      const List found = doubles((*made)[0]);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
            << i << ": " << found[i] << " for " << expected[i];
    }
    return expected;
  }

 private:
  Graph graph_;
};

List through(const List& values, DType element, DType real = f32) {
  Program program;
  const Shape shape{std::ssize(values) / 32, 32};
  program.output(program.floats(program.rounded(program.input(real, shape), element), real));
  return program.run({values});
}

TEST(BlockScaled, NumbersAreThoseOfTheFormats) {
  const auto numbers = [](DType type, int count) {
    List list;
    for (int i = 0; i < count; ++i) {
      const auto bits = static_cast<std::uint8_t>(i);
      list.push_back(element_as_double(type, &bits, 0));
    }
    return list;
  };
  EXPECT_EQ(numbers(f4e2m1, 16), (List{0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6}));
  const List six = numbers(f6e2m3, 32), wide = numbers(f6e3m2, 32), scales = numbers(f8ue8m0, 256);
  EXPECT_EQ(List(six.begin(), six.begin() + 9), (List{0, .125, .25, .375, .5, .625, .75, .875, 1}));
  EXPECT_EQ(six.back(), 7.5);
  EXPECT_EQ(List(wide.begin(), wide.begin() + 5), (List{0, .0625, .125, .1875, .25}));
  EXPECT_EQ(wide.back(), 28);
  EXPECT_EQ(scales[0], 0x1p-127);
  EXPECT_EQ(scales[254], 0x1p127);
  EXPECT_TRUE(std::isnan(scales[255]));
  EXPECT_EQ(numbers(mxint8, 128).back(), 127.0 / 64);
  // Back: to the nearest, of two as near the even one; beyond the greatest to that.
  const auto nearest = [](DType type, double value) {
    std::uint8_t bits = 0;
    store_double(type, &bits, 0, value);
    return element_as_double(type, &bits, 0);
  };
  for (const DType type : {f4e2m1, f6e2m3, f6e3m2, f8ue8m0})
    for (const double number : numbers(type, type == f8ue8m0 ? 255 : 16)) EXPECT_EQ(nearest(type, number), number);
  EXPECT_EQ(nearest(f4e2m1, 2.5), 2);
  EXPECT_EQ(nearest(f4e2m1, 5), 4);
  EXPECT_EQ(nearest(f4e2m1, 100), 6);
  EXPECT_EQ(nearest(f6e2m3, -100), -7.5);
  EXPECT_EQ(nearest(mxint8, -100), -2);
}

TEST(BlockScaled, NoElementIsBeyondItsTypesGreatest) {
  const List ones(32, 1);
  for (const DType type : elements) EXPECT_EQ(through(ones, type), ones) << name_of(type);
  // The least scale that holds 448 is 1; what is above it takes 2.
  List edge(64, 3);
  edge[5] = 448;
  edge[40] = 449;
  const List found = through(edge, f8e4m3);
  EXPECT_EQ(found[5], 448);
  EXPECT_EQ(found[40], 448);  // 224.5 is nearest to 224
  EXPECT_EQ(found[0], 3);
}

TEST(BlockScaled, BlocksOfAllMagnitudesInBothForms) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const DType type : elements)
    for (const DType real : {f32, bf16, f16}) {
      List values;
      const int most = real == f16 ? 14 : 124, least = real == f16 ? -14 : -140;
      for (int e = least; e <= most; e += 6)
        for (int i = 0; i < 32; ++i) values.push_back(std::ldexp(normal(random), e) / 16);
      for (int i = 0; i < 32; ++i) values.push_back(0);
      for (int i = 0; i < 32; ++i) values.push_back(i / 64.0);  // halves between elements
      for (int i = 0; i < 32; ++i) values.push_back(i % 2 ? -1 : 6 + i / 128.0);
      for (double& value : values) {
        std::uint32_t stored = 0;
        store_double(real, &stored, 0, value);
        value = element_as_double(real, &stored, 0);
      }
      const List found = through(values, type, real);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t first = i / 32 * 32;
        double largest = 0;
        for (std::size_t k = first; k < first + 32; ++k) largest = std::max(largest, std::fabs(values[k]));
        EXPECT_LE(std::fabs(found[i] - values[i]), std::max(largest / 4, 0x1p-127))
            << name_of(type) << " " << values[i];
      }
    }
}

TEST(BlockScaled, OneThatIsNoNumberTakesItsBlockWithIt) {
  for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const DType type : elements) {
      List values(64, 1.5);
      values[3] = odd;
      const List found = through(values, type);
      for (int i = 0; i < 32; ++i) EXPECT_TRUE(std::isnan(found[static_cast<std::size_t>(i)])) << name_of(type);
      EXPECT_EQ(found[32], 1.5);
    }
}

TEST(BlockScaled, ProductsAreThoseOfTheFloats) {
  std::mt19937 random(8);
  std::uniform_int_distribution<int> bit(0, 1), exponent(125, 129);
  for (const DType type : elements)
    for (const std::int64_t matrices : {1, 2}) {
      List x(2 * 3 * 64), weight, scales, floats;
      for (double& v : x) v = bit(random) ? 1 : -0.5;
      for (std::int64_t i = 0; i < matrices * 4 * 64; ++i) weight.push_back(bit(random) ? 1.5 : -1);
      for (std::int64_t i = 0; i < matrices * 4 * 2; ++i) scales.push_back(std::ldexp(1, exponent(random) - 127));
      for (std::size_t i = 0; i < weight.size(); ++i) floats.push_back(weight[i] * scales[i / 32]);
      Program program;
      const auto a = program.rounded(program.input(f32, {2, 3, 64}), type);
      const ValueId b = program.constant(type, {matrices, 4, 64}, weight);
      const ValueId by = program.constant(f8ue8m0, {matrices, 4, 2}, scales);
      program.output(program.call("matmul_t_block_scaled", {a[0], a[1], b, by}, f32)[0]);
      const List found = program.run({x});
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::size_t n = i / 12, h = i / 4, w = i % 4 + (matrices == 2 ? 4 * n : 0);
        double sum = 0;
        for (std::size_t c = 0; c < 64; ++c) sum += x[h * 64 + c] * floats[w * 64 + c];
        EXPECT_EQ(found[i], sum);
      }
    }
}

TEST(BlockScaled, ConvolutionsAreThoseOfTheFloats) {
  for (const DType type : {f8e4m3, f8e5m2, f6e2m3, f6e3m2, f4e2m1}) {
    Program program;
    const auto x = program.rounded(program.input(f32, {1, 4, 5, 32}), type);
    const ValueId weight = program.constant(type, {2, 3, 3, 32}, List(576, 1.5)),
                  scale = program.constant(f8ue8m0, {2, 3, 3, 1}, List(18, 0.25)),
                  bias = program.constant(f32, {2}, {0, 7});
    program.output(program.call(
        "conv2d_block_scaled",
        {x[0], x[1], weight, scale, bias, program.shape({1, 1, 1, 1}), program.shape({1, 2}), program.shape({1, 1})},
        f32)[0]);
    const List found = program.run({List(640, 2)});
    ASSERT_EQ(found.size(), 24u);
    EXPECT_EQ(found[0], 4 * 32 * 2 * 0.375);  // a corner: four taps
    EXPECT_EQ(found[1], 4 * 32 * 2 * 0.375 + 7);
  }
}

TEST(BlockScaled, RowsAndShapes) {
  Program program;
  List values(2 * 3 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i / 64 + 1) * (i % 64 < 32 ? 1 : 8);
  const auto x = program.rounded(program.input(f32, {2, 3, 64}), f4e2m1);
  const auto rows =
      program.call("row_gather_block_scaled",
                   {x[0], x[1], program.constant(i32, {2, 1}, {1, 0}), program.constant(i32, {1}, {2})}, f4e2m1);
  const auto flat = program.call("reshape_block_scaled", {rows[0], rows[1], program.shape({4, 2, 32})}, f4e2m1);
  program.output(program.floats(flat));
  const List found = program.run({values});
  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[32], 16);
  EXPECT_EQ(found[64], 3);
  EXPECT_EQ(found[128], 4);
}

// Whoever gives or takes such tensors sees their own types: nothing is rewritten.
TEST(BlockScaled, InterfacesStay) {
  OneNode node{"cast_from_block_scaled",
               {in(f4e2m1, {1, 32}, List(32, 1.5)), in(f8ue8m0, {1, 1}, {4})},
               blocks,
               {{f32, {1, 32}, std::nullopt}}};
  EXPECT_EQ(node.verify(), "");
  EXPECT_EQ(doubles((*node.run())[0]), List(32, 6));
  EXPECT_FALSE(extension::in_tosa_1_0(node.graph()));
}

TEST(BlockScaled, Rules) {
  const auto cast = [](Shape shape, Shape scales, std::int64_t size) {
    return OneNode{"cast_from_block_scaled",
                   {in(f4e2m1, std::move(shape)), in(f8ue8m0, std::move(scales))},
                   {{"block_size", size}},
                   {{f32, {1, 32}, std::nullopt}}};
  };
  EXPECT_EQ(cast({1, 32}, {1, 1}, 32).verify(), "");
  EXPECT_EQ(cast({1, 32}, {1, 1}, 16).verify(), "cast_from_block_scaled.block-size");
  EXPECT_EQ(cast({1, 33}, {1, 1}, 32).verify(), "cast_from_block_scaled.blocks");
  EXPECT_EQ(cast({1, 32}, {1, 2}, 32).verify(), "cast_from_block_scaled.blocks");
  EXPECT_EQ(cast({1, 32}, {1, 1}, 32).message({tosa::Feature::pro_fp, tosa::Feature::v1_1}),
            "cast_from_block_scaled of f4e2m1 is for targets with EXT-MXFP; this one is TOSA-1.1+FP");
  EXPECT_EQ(Spec::parse("TOSA-1.1+FP+mxfp")->text(), "TOSA-1.1+FP+mxfp");
  EXPECT_EQ(Spec::parse("TOSA-1.0+FP+mxfp").error().message, "EXT-MXFP extends TOSA-1.1, which is not named");
  const auto product = [](Shape b, Shape scales) {
    return OneNode{
        "matmul_t_block_scaled",
        {in(f8e4m3, {2, 1, 32}), in(f8ue8m0, {2, 1, 1}), in(f8e4m3, std::move(b)), in(f8ue8m0, std::move(scales))},
        blocks};
  };
  EXPECT_EQ(product({1, 4, 32}, {1, 4, 1}).verify(), "");
  EXPECT_EQ(product({3, 4, 32}, {3, 4, 1}).verify(), "matmul_t_block_scaled.batch");
  EXPECT_EQ(product({1, 4, 64}, {1, 4, 2}).verify(), "matmul_t_block_scaled.inner-size");
  const auto conv = [](List stride, double channels) {
    return OneNode{
        "conv2d_block_scaled",
        {in(f8e4m3, {1, 4, 4, 32}), in(f8ue8m0, {1, 4, 4, 1}), in(f8e4m3, {2, 3, 3, 32}), in(f8ue8m0, {2, 3, 3, 1}),
         in(f32, {static_cast<std::int64_t>(channels)}), dims({0, 0, 0, 0}), dims(std::move(stride)), dims({1, 1})},
        blocks,
        {{f32, {1, 2, 2, 2}, std::nullopt}}};
  };
  EXPECT_EQ(conv({1, 1}, 2).verify(), "");
  EXPECT_EQ(conv({1, 0}, 2).verify(), "conv2d_block_scaled.stride");
  EXPECT_EQ(conv({1}, 2).verify(), "conv2d_block_scaled.stride-length");
  EXPECT_EQ(conv({1, 1}, 3).verify(), "conv2d_block_scaled.bias-size");
  const auto reshape = [](List shape) {
    return OneNode{"reshape_block_scaled",
                   {in(f4e2m1, {2, 64}), in(f8ue8m0, {2, 2}), dims(std::move(shape))},
                   blocks,
                   {{f4e2m1, {4, 32}, std::nullopt}, {f8ue8m0, {4, 1}, std::nullopt}}};
  };
  EXPECT_EQ(reshape({4, 32}).verify(), "");
  EXPECT_EQ(reshape({8, 16}).verify(), "reshape_block_scaled.blocks");
  EXPECT_EQ(reshape({2, 32}).verify(), "reshape_block_scaled.element-count");
  EXPECT_EQ(reshape({-4, 32}).verify(), "reshape_block_scaled.shape-value");
}

}  // namespace
}  // namespace tosaic
