// SPDX-License-Identifier: Apache-2.0
// Floats that are kept in 16 bits, computed by hand.
#include "compare/by_hand.h"

namespace tosaic {
namespace {

// All that the program computes but its outputs is kept in f16.
NarrowFloats in_f16(const Graph& program) {
  const auto keep = [](Graph kept) {
    for (const Node& node : kept.nodes)
      for (ValueId v : node.outputs)
        if (std::ranges::find(kept.outputs, v) == kept.outputs.end()) kept[v].type.dtype = DType::f16;
    return kept;
  };
  NarrowFloats made;
  made.executed = *lower(program);
  made.executed.graph = rounded_as_kept(made.executed.graph, keep(made.executed.graph));
  made.kept.resize(program.values.size());
  for (const Node& node : program.nodes)
    for (ValueId v : node.outputs)
      if (std::ranges::find(program.outputs, v) == program.outputs.end()) made.kept[v] = DType::f16;
  made.alone = [](const Graph& tosa) -> Result<Graph> { return tosa; };
  made.keep_option = "keep";
  return made;
}

Comparison compared(const std::string& text, const std::vector<float>& sample) {
  const FloatProgram program = program_of(text);
  const tosa::Spec spec = *tosa::Spec::parse("TOSA-1.0+FP");
  const NarrowFloats narrow = in_f16(program.graph);
  auto found =
      compare_programs(program, program.graph, {{floats(sample)}}, {.spec = &spec, .narrow = &narrow, .threads = 1});
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : render(found.error(), false));
  return found.ok() ? *std::move(found) : Comparison{};
}

const char* const doubled_twice = R"(graph @main(%x: 2xf32) -> (%b) {
  %a: 2xf32 = aten.add.Tensor(%x, %x) loc("m.py":1 in "first" "First" from "aten.add.Tensor" as "add")
  %b: 2xf32 = aten.add.Tensor(%a, %a) loc("m.py":2 in "second" "Second" from "aten.add.Tensor" as "add_1")
})";

// a = 2049 and 4, of which f16 has 2048 and 4; b = 4098 and 8 becomes 4096 and 8. Alone, the second call is given 2048.
TEST(NarrowFloats, own_and_accumulated_errors_are_those_by_hand) {
  const Comparison found = compared(doubled_twice, {1024.5, 2});
  const ComparedLayer &a = layer(found, "a"), &b = layer(found, "b");
  const double signal = 2049.0 * 2049 + 16;
  EXPECT_EQ(a.type, "f16");
  EXPECT_EQ(b.type, "f32");
  EXPECT_NEAR(a.own_db.value_or(0), db_of(signal, 1), in_db);
  EXPECT_NEAR(a.accumulated.db, db_of(signal, 1), in_db);
  EXPECT_NEAR(b.own_db.value_or(0), db_of(signal, 1), in_db);
  EXPECT_NEAR(b.accumulated.db, db_of(signal, 1), in_db);
  EXPECT_EQ(a.saturated, 0.0);
  EXPECT_TRUE(a.reasons.empty());
}

TEST(NarrowFloats, what_f16_cannot_hold_is_named_with_the_option) {
  const Comparison found = compared(doubled_twice, {40000, 2});
  const ComparedLayer& a = layer(found, "a");
  EXPECT_EQ(a.saturated, 0.5);
  EXPECT_EQ(a.accumulated.db, -std::numeric_limits<double>::infinity());
  ASSERT_EQ(a.reasons.size(), 1u);
  EXPECT_EQ(a.reasons[0].kind, "overflow");
  EXPECT_NE(a.reasons[0].sentence.find("65504"), std::string::npos);
  EXPECT_EQ(a.reasons[0].remedy, "--keep add");
}

// 2049 - 2048 of numbers that are 2048 both: nothing is left.
TEST(NarrowFloats, a_small_difference_of_large_numbers_names_its_operand) {
  const Comparison found = compared(R"(graph @main(%x: 2xf32) -> (%b) {
  %large: 1xf32 = constant [2048]
  %a: 2xf32 = aten.add.Tensor(%x, %x) loc("m.py":1 in "first" "First" from "aten.add.Tensor" as "add")
  %b: 2xf32 = aten.sub.Tensor(%a, %large) loc("m.py":2 in "second" "Second" from "aten.sub.Tensor" as "sub")
})",
                                    {1024.5, 1025.5});
  const ComparedLayer& b = layer(found, "b");
  EXPECT_NEAR(b.own_db.value_or(0), db_of(1 + 9, 1 + 1), in_db);
  ASSERT_EQ(b.reasons.size(), 1u);
  EXPECT_EQ(b.reasons[0].kind, "operands");
  EXPECT_EQ(b.reasons[0].remedy, "--keep add");
  EXPECT_EQ(&found.layers[0], &b);
}

TEST(NarrowFloats, small_numbers_have_fewer_digits) {
  const Comparison found = compared(doubled_twice, {1e-6F, 1.7e-6F});
  const ComparedLayer& a = layer(found, "a");
  ASSERT_EQ(a.reasons.size(), 1u);
  EXPECT_EQ(a.reasons[0].kind, "denormal");
  EXPECT_LT(a.own_db.value_or(0), 45);
}

TEST(NarrowFloats, constants_are_what_is_left_of_them) {
  const Graph graph = lower(graph_of(R"(graph @main(%x: 2xf32) -> (%y) {
  %c: 2xf32 = constant [2049, 1]
  %y: 2xf32 = aten.mul.Tensor(%x, %c)
})"))
                          ->graph;
  Graph kept = graph;
  for (Value& value : kept.values)
    if (value.is_constant() && value.type.dtype == DType::f32) {
      value.constant = converted({value.type, value.constant.data()}, DType::f16);
      value.type.dtype = DType::f16;
    }
  const Graph rounded = rounded_as_kept(graph, kept);
  for (const Value& value : rounded.values)
    if (value.is_constant() && value.type.dtype == DType::f32) {
      EXPECT_EQ(value.constant.as<float>()[0], 2048);
      EXPECT_EQ(value.constant.as<float>()[1], 1);
    }
}

}  // namespace
}  // namespace tosaic
