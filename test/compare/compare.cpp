// SPDX-License-Identifier: Apache-2.0
// Two calls, computed by hand: what each loses alone, and what all of them lose together.
#include <limits>

#include "compare/by_hand.h"

namespace tosaic {
namespace {

ValueId named(const Graph& graph, const std::string& name) {
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].name == name) return v;
  ADD_FAILURE() << "no value " << name;
  return 0;
}

Comparison compared(const FloatProgram& program, const std::string& quantised, const std::vector<float>& sample) {
  const tosa::Spec spec = *tosa::Spec::parse("TOSA-1.0+INT+int16");
  auto found = compare_programs(program, graph_of(quantised), {{floats(sample)}}, {.spec = &spec, .threads = 1});
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : render(found.error(), false));
  return found.ok() ? *std::move(found) : Comparison{};
}

const char* const doubled_twice = R"(graph @main(%x: 4xf32) -> (%b) {
  %a: 4xf32 = aten.add.Tensor(%x, %x) loc("m.py":1 in "first" "First" from "aten.add.Tensor" as "add")
  %b: 4xf32 = aten.add.Tensor(%a, %a) loc("m.py":2 in "second" "Second" from "aten.add.Tensor" as "add_1")
})";

// x is 1, 2, 3, 4 in quantised values. a = 2 4 6 8 becomes 3 3 6 9, and b of it 5 5 10 20. Alone, the second call is
// given 2.8 4.8 6.8 8.8, which is 3 6 6 9, and gives 5 10 10 20.
TEST(Compare, own_and_accumulated_errors_are_those_by_hand) {
  const Comparison found = compared(program_of(doubled_twice), R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %a: 4xi8<3:0> = aten.add.Tensor(%x, %x) loc("m.py":1 in "first" "First" from "aten.add.Tensor" as "add")
  %b: 4xi8<5:0> = aten.add.Tensor(%a, %a) loc("m.py":2 in "second" "Second" from "aten.add.Tensor" as "add_1")
})",
                                    {1.4F, 2.4F, 3.4F, 4.4F});
  ASSERT_EQ(found.layers.size(), 2u);
  const double first = db_of(154.56, 3.96);
  const ComparedLayer &a = layer(found, "a"), &b = layer(found, "b");
  EXPECT_NEAR(a.accumulated.db, first, in_db);
  EXPECT_NEAR(a.own_db.value_or(0), first, in_db);
  EXPECT_NEAR(b.accumulated.db, db_of(618.24, 40.24), in_db);
  EXPECT_NEAR(b.own_db.value_or(0), db_of(618.24, 19.24), in_db);
  EXPECT_EQ(&found.layers[0], &b);  // the worst first
  ASSERT_TRUE(b.accumulated.worst_channel);
  EXPECT_EQ(b.accumulated.worst_channel->channel, 1);
  EXPECT_NEAR(b.accumulated.worst_channel->db, db_of(92.16, 21.16), in_db);
  EXPECT_EQ(b.saturated, 0.0);
  EXPECT_NEAR(b.range_used.value_or(0), 4 / 255.0, 1e-9);  // 0 to 4
  EXPECT_EQ(b.node, "add_1");
  EXPECT_EQ(b.where, "second, m.py:2");
  EXPECT_EQ(b.type, "i8");
  EXPECT_TRUE(b.delegated);
  ASSERT_EQ(found.outputs.size(), 1u);
  EXPECT_EQ(found.outputs[0].error.db, b.accumulated.db);
}

// x is 100, and a = 3 becomes 2: by itself that is 9.5 dB, in the sum with x 40.
TEST(Compare, a_term_of_a_sum_is_held_against_the_sum) {
  const Comparison found = compared(program_of(R"(graph @main(%x: 1xf32) -> (%b) {
  %a: 1xf32 = aten.mul.Tensor(%x) {other=0.03} loc("m.py":1 from "aten.mul.Tensor" as "mul")
  %b: 1xf32 = aten.add.Tensor(%x, %a) loc("m.py":2 from "aten.add.Tensor" as "add")
})"),
                                    R"(graph @main(%x: 1xi8<1:0>) -> (%b) {
  %a: 1xi8<2:0> = aten.mul.Tensor(%x) {other=0.03} loc("m.py":1 from "aten.mul.Tensor" as "mul")
  %b: 1xi8<2:0> = aten.add.Tensor(%x, %a) loc("m.py":2 from "aten.add.Tensor" as "add")
})",
                                    {100});
  EXPECT_NEAR(layer(found, "a").own_db.value_or(0), db_of(103 * 103, 1), in_db);
  EXPECT_NEAR(layer(found, "a").accumulated.db, db_of(9, 1), in_db);
}

TEST(Compare, floats_that_are_nan_are_no_equal) {
  const Comparison found = compared(program_of(R"(graph @main(%x: 4xf32) -> (%b) {
  %b: 4xf32 = aten.log.default(%x) loc("m.py":1 from "aten.log.default" as "log")
})"),
                                    R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %b: 4xi8<1:0> = aten.log.default(%x) loc("m.py":1 from "aten.log.default" as "log")
})",
                                    {-1, -2, -3, -4});
  ASSERT_EQ(found.outputs.size(), 1u);
  EXPECT_EQ(found.outputs[0].error.db, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(found.outputs[0].error.cosine, 0);
}

TEST(Compare, what_lies_beyond_the_range_is_counted_and_the_option_named) {
  const Comparison found = compared(program_of(doubled_twice), R"(graph @main(%x: 4xi8<1:0>) -> (%b) {
  %a: 4xi8<0.0625:0> = aten.add.Tensor(%x, %x) loc("m.py":1 in "first" "First" from "aten.add.Tensor" as "add")
  %b: 4xi8<1:0> = aten.add.Tensor(%a, %a) loc("m.py":2 in "second" "Second" from "aten.add.Tensor" as "add_1")
})",
                                    {1, 2, 3, 4});
  const ComparedLayer& a = layer(found, "a");  // 127 / 16 is 7.94: the last element is cut off
  EXPECT_EQ(a.saturated, 0.25);
  ASSERT_EQ(a.reasons.size(), 1u);
  EXPECT_EQ(a.reasons[0].kind, "clipped");
  EXPECT_EQ(a.reasons[0].remedy, "--observer minmax");
  EXPECT_EQ(layer(found, "b").saturated, 0.0);
}

// The convolution's own result is what its relu leaves of it: one layer.
TEST(Compare, a_held_result_is_no_layer_and_weights_are_seen) {
  FloatProgram program = program_of(R"(graph @main(%x: 1x1x2x2xf32) -> (%r) {
  %w: 1x1x1x1xf32 = constant [0.7]
  %c: 1x1x2x2xf32 = aten.conv2d.default(%x, %w, none) loc("m.py":1 from "aten.conv2d.default" as "conv2d")
  %r: 1x1x2x2xf32 = aten.relu.default(%c) loc("m.py":2 from "aten.relu.default" as "relu")
})");
  program.held[named(program.graph, "c")] = 1;
  const Graph quantised = graph_of(R"(graph @main(%x: 1x1x2x2xi8<1:0>) -> (%r) {
  %w.codes: 1x1x1x1xi8<1:0 axis 0> = constant [1]
  %c: 1x1x2x2xi8<1:0> = aten.conv2d.default(%x, %w.codes, none) loc("m.py":1 from "aten.conv2d.default" as "conv2d")
  %r: 1x1x2x2xi8<1:0> = aten.relu.default(%c) loc("m.py":2 from "aten.relu.default" as "relu")
})");
  const tosa::Spec spec = *tosa::Spec::parse("TOSA-1.0+INT");
  const Tensor sample{{DType::f32, Shape{1, 1, 2, 2}, {}}, Bytes::of(std::vector<float>{-10, 10, 20, 30})};
  auto found = compare_programs(program, quantised, {{sample}}, {.spec = &spec, .threads = 1});
  ASSERT_TRUE(found.ok()) << render(found.error(), false);
  ASSERT_EQ(found->layers.size(), 1u);
  const ComparedLayer& only = found->layers[0];
  EXPECT_EQ(only.ops, (std::vector<std::string>{"aten.conv2d.default", "aten.relu.default"}));
  EXPECT_EQ(only.node, "conv2d");
  const double lost = db_of(49 + 196 + 441, 9 + 36 + 81);
  EXPECT_NEAR(only.own_db.value_or(0), lost, in_db);
  EXPECT_NEAR(only.weights_db.value_or(0), lost, in_db);
  EXPECT_NEAR(only.accumulated.db, lost, in_db);
  ASSERT_EQ(only.reasons.size(), 1u);
  EXPECT_EQ(only.reasons[0].kind, "weights");
  EXPECT_EQ(only.reasons[0].remedy, "--override 'conv2d: float'");
}

TEST(Compare, what_computes_floats_is_equal_and_has_no_error_of_its_own) {
  const Comparison found = compared(program_of(doubled_twice), R"(graph @main(%x: 4xf32) -> (%b) {
  %a: 4xf32 = aten.add.Tensor(%x, %x)
  %a.codes: 4xi8<0.5:0> = quantized_decomposed.quantize_per_tensor.default(%a) {scale=0.5, zero_point=0, quant_min=-128, quant_max=127, dtype=i8}
  %b.codes: 4xi8<0.5:0> = aten.add.Tensor(%a.codes, %a.codes)
  %b: 4xf32 = quantized_decomposed.dequantize_per_tensor.default(%b.codes) {scale=0.5, zero_point=0, quant_min=-128, quant_max=127, dtype=i8}
})",
                                    {1, 2, 3, 4});
  EXPECT_FALSE(layer(found, "a").own_db);
  EXPECT_EQ(layer(found, "a").accumulated.db, std::numeric_limits<double>::infinity());
  EXPECT_EQ(layer(found, "b").type, "i8");
  EXPECT_EQ(layer(found, "b").own_db, std::numeric_limits<double>::infinity());
  EXPECT_EQ(found.outputs[0].type, "f32");
}

TEST(Compare, a_program_of_floats_is_refused) {
  const FloatProgram program = program_of(doubled_twice);
  auto found = compare_programs(program, program.graph, {{floats({1, 2, 3, 4})}}, {});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, "compare.nothing-quantised");
}

}  // namespace
}  // namespace tosaic
