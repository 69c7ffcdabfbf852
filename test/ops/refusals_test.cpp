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
    lower_call(builder, op, std::move(values), attrs, {});
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
}

}  // namespace
}  // namespace tosaic
