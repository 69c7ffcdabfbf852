// SPDX-License-Identifier: Apache-2.0
// Calls that have no meaning, or none that TOSA can express: refused by name, before anything is allocated.
#include <gtest/gtest.h>

#include "ops/op.h"

namespace tosaic {
namespace {

const Shape two_by_three{2, 3};

// The code of the refusal; empty: the call was lowered.
std::string refusal(const std::string& op, std::vector<TensorType> operands, Attrs attrs) {
  Graph graph;
  Builder builder(graph);
  std::vector<std::optional<Val>> values;
  for (const TensorType& type : operands)
    values.emplace_back(Val(&builder, graph.add_value("in." + std::to_string(values.size()), type)));
  try {
    lower_call(builder, Operator(op), std::move(values), attrs, {});
  } catch (Refusal& refused) { return refused.why.code; }
  return {};
}

const TensorType f32{DType::f32, two_by_three, {}}, i32{DType::i32, two_by_three, {}};
using Ints = std::vector<std::int64_t>;

TEST(Refusals, sizes_that_no_constant_has) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(refusal("aten.full.default", {}, {{"size", Ints{huge, huge}}, {"fill_value", 1.0}}), "aten.too-large");
  EXPECT_EQ(refusal("aten.zeros.default", {}, {{"size", Ints{-1}}}), "aten.negative-size");
  EXPECT_EQ(refusal("aten.eye.default", {}, {{"n", huge}}), "aten.too-large");
  EXPECT_EQ(refusal("aten.linspace.default", {}, {{"start", 0.0}, {"end", 1.0}, {"steps", huge}}), "aten.too-large");
  EXPECT_EQ(refusal("aten.arange.default", {}, {{"end", huge}}), "aten.too-large");
  EXPECT_EQ(refusal("aten.fill.Scalar", {{DType::f32, Shape{huge}, {}}}, {{"value", 1.0}}), "aten.too-large");
}

TEST(Refusals, steps_that_never_arrive) {
  auto arange = [](double start, double end, double step) {
    return refusal("aten.arange.start_step", {}, {{"start", start}, {"end", end}, {"step", step}});
  };
  EXPECT_EQ(arange(0, 5, 0), "aten.arange-step");
  EXPECT_EQ(arange(0, 5, -1), "aten.arange-step");
  EXPECT_EQ(arange(0, std::numeric_limits<double>::quiet_NaN(), 1), "aten.arange-step");
  EXPECT_EQ(arange(0, 5, 1), "");
}

TEST(Refusals, training_mode) {
  EXPECT_EQ(refusal("aten.dropout.default", {f32}, {{"p", 0.5}, {"train", true}}), "aten.training");
  EXPECT_EQ(refusal("aten.dropout.default", {f32}, {{"p", 0.5}, {"train", false}}), "");
}

TEST(Refusals, integers_where_tosa_has_none) {
  EXPECT_EQ(refusal("aten.pow.Tensor_Scalar", {i32}, {{"exponent", std::int64_t{-1}}}), "aten.integer-power");
  EXPECT_EQ(refusal("aten.pow.Tensor_Tensor", {i32, i32}, {}), "aten.integer-power");
  EXPECT_EQ(refusal("aten.bitwise_and.Tensor", {f32, f32}, {}), "aten.bitwise-float");
}

TEST(Refusals, arguments) {
  EXPECT_EQ(refusal("aten.glu.default", {f32}, {{"dim", std::int64_t{1}}}), "aten.glu-odd");
  EXPECT_EQ(refusal("aten.glu.default", {f32}, {{"dim", std::int64_t{2}}}), "aten.dim-range");
  EXPECT_EQ(refusal("aten.clamp.default", {f32}, {{"min", std::numeric_limits<double>::quiet_NaN()}}),
            "aten.nan-bound");
  EXPECT_EQ(refusal("aten.celu.default", {f32}, {{"alpha", 0.0}}), "aten.celu-alpha");
  EXPECT_EQ(refusal("aten.add.Tensor", {f32, {DType::f32, Shape{4}, {}}}, {}), "aten.broadcast");
  EXPECT_EQ(refusal("aten.add.Tensor", {f32}, {}), "aten.missing-argument");
  EXPECT_EQ(refusal("aten.add.Tensor", {f32, f32}, {{"alpha", SymbolicArgument{"s0"}}}), "aten.symbolic-argument");
  EXPECT_EQ(refusal("aten.no_such_operator.default", {f32}, {}), "aten.unknown-operator");
  EXPECT_EQ(refusal("aten.avg_pool2d_backward.default", {f32}, {}), "aten.training");
  EXPECT_EQ(refusal("aten.resize_.default", {f32}, {}), "aten.resized");
  EXPECT_EQ(refusal("acme.swap_backward.default", {f32}, {}), "aten.unknown-operator");
}

TEST(Refusals, shapes_that_do_not_fit) {
  const TensorType image{DType::f32, {1, 3, 8, 8}, {}}, weight{DType::f32, {4, 3, 3, 3}, {}};
  EXPECT_EQ(refusal("aten.conv2d.default", {image, weight}, {{"groups", std::int64_t{2}}}), "aten.conv2d.groups");
  EXPECT_EQ(refusal("aten.conv2d.default", {image, {DType::f32, {4, 2, 3, 3}, {}}}, {}), "aten.conv2d.channels");
  EXPECT_EQ(refusal("aten.conv2d.padding", {image, weight}, {{"padding", std::string("around")}}),
            "aten.conv2d.padding");
  EXPECT_EQ(refusal("aten.linear.default", {f32, {DType::f32, {4, 2}, {}}}, {}), "aten.linear.shape");
  EXPECT_EQ(refusal("aten.matmul.default", {f32, f32}, {}), "aten.matmul.shape");
  EXPECT_EQ(refusal("aten.cat.default", {f32, {DType::f32, {3, 3, 1}, {}}}, {}), "aten.concat-shape");
  EXPECT_EQ(refusal("aten.view.default", {f32}, {{"size", Ints{4, -1}}}), "aten.reshape-size");
  EXPECT_EQ(refusal("aten.amax.default", {{DType::f32, {2, 0}, {}}}, {{"dim", Ints{1}}}), "aten.empty-tensor");
}

TEST(Refusals, what_is_known_only_at_run_time) {
  EXPECT_EQ(refusal("aten.index.Tensor", {f32, {DType::boolean, two_by_three, {}}}, {}), "aten.index.mask");
  EXPECT_EQ(refusal("aten.one_hot.default", {i32}, {}), "aten.one_hot.classes");
}

TEST(Refusals, arguments_of_layers) {
  const TensorType image{DType::f32, {1, 3, 8, 8}, {}};
  EXPECT_EQ(refusal("aten.max_pool2d.default", {image}, {{"kernel_size", Ints{2, 2}}, {"padding", Ints{2, 2}}}),
            "aten.max_pool2d.arguments");
  EXPECT_EQ(refusal("aten.avg_pool2d.default", {image}, {{"kernel_size", Ints{9, 9}}}), "aten.avg_pool2d.kernel-size");
  EXPECT_EQ(refusal("aten.pad.default", {image}, {{"pad", Ints{9, 0}}, {"mode", std::string("reflect")}}),
            "aten.pad.size");
  EXPECT_EQ(refusal("aten.slice.Tensor", {image}, {{"step", std::int64_t{-1}}}), "aten.slice.step");
  EXPECT_EQ(refusal("aten.layer_norm.default", {f32}, {{"normalized_shape", Ints{2}}}), "aten.layer_norm.shape");
  EXPECT_EQ(refusal("aten.mean.dim", {i32}, {{"dim", Ints{0}}}), "aten.mean.dtype");
  EXPECT_EQ(refusal("aten.scaled_dot_product_attention.default", {f32, f32, f32}, {{"dropout_p", 0.1}}),
            "aten.scaled_dot_product_attention.dropout");
}

TEST(Refusals, block_scaled_weights) {
  const auto weight = [](TensorType data, TensorType scale, std::string type, std::int64_t block = 32) {
    Graph graph;
    Builder builder(graph);
    const auto constant = [&](const TensorType& t) {
      const auto bytes = static_cast<std::size_t>(t.shape.elements()) * storage_size(t.dtype);
      return builder.constant(t, Bytes::of(std::vector<std::uint8_t>(bytes)));
    };
    const Val x(&builder, graph.add_value("x", {DType::f32, {2, 64}, {}}));
    try {
      lower_call(builder, Operator("tosa_mxfp.linear.default"), {x, constant(data), constant(scale)},
                 {{"block_size", block}, {"weight_payload_dtype", std::move(type)}}, {});
    } catch (Refusal& refused) { return refused.why.code; }
    return std::string();
  };
  const TensorType bytes{DType::u8, {1, 4, 64}, {}}, scales{DType::u8, {1, 4, 2}, {}};
  EXPECT_EQ(weight(bytes, scales, "f8e4m3"), "");
  EXPECT_EQ(weight(bytes, {DType::u8, {1, 4, 1}, {}}, "f8e4m3"), "aten.mxfp.shape");
  EXPECT_EQ(weight({DType::u8, {4, 64}, {}}, {DType::u8, {4, 2}, {}}, "f8e4m3"), "aten.mxfp.shape");
  EXPECT_EQ(weight({DType::u8, {}, {}}, scales, "f4e2m1"), "aten.mxfp.shape");
  EXPECT_EQ(weight(bytes, {DType::u8, {}, {}}, "f8e4m3"), "aten.mxfp.shape");
  EXPECT_EQ(weight(bytes, scales, "f8e4m3", 16), "aten.mxfp.block-size");
  EXPECT_EQ(weight(bytes, scales, "float9"), "aten.mxfp.type");
  EXPECT_EQ(weight({DType::i32, {1, 4, 64}, {}}, scales, ""), "aten.mxfp.type");
  EXPECT_EQ(weight({DType::i32, {1, 4, 64}, {}}, scales, "f8e4m3"), "aten.mxfp.type");
  const TensorType x{DType::f32, {2, 64}, {}};
  EXPECT_EQ(refusal("tosa_mxfp.linear.default", {x, bytes, scales}, {}), "aten.mxfp.weight");
}

}  // namespace
}  // namespace tosaic
