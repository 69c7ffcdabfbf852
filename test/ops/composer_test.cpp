// SPDX-License-Identifier: Apache-2.0
// Calls that stages write: nodes, whose results have the types that their lowerings give.
#include "ops/composer.h"

#include <gtest/gtest.h>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"

namespace tosaic {
namespace {

struct Composing : testing::Test {
  Graph graph;
  ValueId x = graph.add_value("x", {DType::f32, Shape{2, 3}, {}});
  ValueId ones = graph.add_value("ones", {DType::f32, Shape{3}, {}}, Bytes::of(std::vector<float>{1, 1, 1}));
};

TEST_F(Composing, a_call_stays_a_node_of_an_inferred_type) {
  Composer c(graph);
  const Val y = calls::sum(calls::transpose(c.value(x), 0, 1), {1}, false);
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].op, aten::op::transpose_int);
  EXPECT_EQ(graph.nodes[1].outputs, std::vector{y.id()});
  EXPECT_EQ(to_string(y.type()), "3xf32");
}

TEST_F(Composing, constants_are_evaluated_or_left) {
  Composer c(graph, [](Operator op) { return fmt::format("made by {}", op.base()); });
  EXPECT_TRUE(calls::mul(c.value(ones), 2.0).is_constant());
  EXPECT_TRUE(graph.nodes.empty());
  c.fold(false);
  const Val y = calls::mul(c.value(ones), 2.0);
  EXPECT_FALSE(y.is_constant());
  EXPECT_EQ(graph[y.id()].name, "made by mul");
}

TEST_F(Composing, what_cannot_be_lowered_is_refused) {
  Composer c(graph);
  const auto transposed = [&]() -> Result<ValueId> { return calls::transpose(c.value(x), 0, 2).id(); };
  EXPECT_EQ(unless_refused(transposed).error().code, "aten.dim-range");
  EXPECT_THROW(c.tosa(Operator("tosa.exp"), {c.value(x)}), Refusal);
  EXPECT_TRUE(graph.nodes.empty());
}

TEST_F(Composing, integers_stay_as_wide_as_they_are) {
  Composer c(graph);
  const Val a = c.value(graph.add_value("a", {DType::i64, Shape(), {}}));
  for (Operator op : {aten::op::add_Tensor, aten::op::sub_Tensor, aten::op::mul_Tensor, aten::op::floor_divide,
                      aten::op::remainder_Tensor})
    EXPECT_EQ(to_string(c.aten(op, {a, a}).type()), "i64") << op.text();
}

// What stages write before int64 and float64 are gone: the dtypes of programs.
class DTypes : public Composing, public testing::WithParamInterface<DType> {};

TEST_P(DTypes, move_as_they_are) {
  const DType dtype = GetParam();
  Composer c(graph);
  c.fold(false);
  const Val a = c.value(graph.add_value("a", {dtype, Shape{2, 3}, {}}));
  const Val row = c.value(graph.add_value("row", {dtype, Shape{1, 3}, {}}));
  const Val one = c.value(graph.add_value("one", {dtype, Shape(), {}}));
  const Val mask = c.value(graph.add_value("mask", {DType::boolean, Shape{2, 3}, {}}));
  const Val places = c.value(graph.add_value("places", {DType::i64, Shape{6}, {}}));
  const Attrs first{
      {"dim", std::int64_t{0}}, {"start", std::int64_t{1}}, {"end", std::int64_t{2}}, {"step", std::int64_t{1}}};
  const auto is = [&](Val v, const Shape& shape) { return v.type() == TensorType{dtype, shape, {}}; };
  EXPECT_TRUE(is(calls::view(a, Shape{6}), {6}));
  EXPECT_TRUE(is(calls::permute(a, {1, 0}), {3, 2}));
  EXPECT_TRUE(is(c.aten(aten::op::slice_Tensor, {a}, first), {1, 3}));
  EXPECT_TRUE(is(c.aten(aten::op::slice_scatter, {a, row}, first), {2, 3}));
  EXPECT_TRUE(is(calls::where(mask, a, one), {2, 3}));
  EXPECT_TRUE(is(c.aten(aten::op::index_select, {calls::view(a, Shape{6}), places}, {{"dim", std::int64_t{0}}}), {6}));
  EXPECT_TRUE(is(c.aten(aten::op::select_int, {a}, {{"dim", std::int64_t{0}}, {"index", std::int64_t{1}}}), {3}));
  EXPECT_TRUE(is(c.aten(aten::op::stack, {a, a}, {{"dim", std::int64_t{0}}}), {2, 2, 3}));
  for (DType other : {DType::f32, DType::i32, DType::i64, DType::f16, DType::boolean})
    EXPECT_EQ(c.aten(aten::op::_to_copy, {a}, {{"dtype", other}}).dtype(), other);
}

INSTANTIATE_TEST_SUITE_P(Composer, DTypes,
                         testing::Values(DType::boolean, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64,
                                         DType::f16, DType::bf16, DType::f32, DType::f64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace tosaic
