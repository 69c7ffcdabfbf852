// SPDX-License-Identifier: Apache-2.0
// Each quantisation rule, on one operator: what it answers, and that its integer form is what the answers promise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lower/lower.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

std::string answers(Rule rule) {
  std::string all;
  const auto say = [&](bool answer, std::string_view name) {
    if (answer) all += fmt::format("{}{}", all.empty() ? "" : " ", name);
  };
  say(rule->has_integer_form, "integer_form");
  say(rule->is_composite, "composite");
  say(rule->quantises(), "quantises");
  say(rule->passes_values, "passes_values");
  say(rule->joins_operands, "joins_operands");
  say(rule->shares_scale(), "shares_scale");
  say(rule->tabulates, "tabulates");
  say(rule->maps_values(), "maps_values");
  say(rule->adds, "adds");
  say(rule->is_linear, "linear");
  say(rule->is_magnitude, "magnitude");
  say(rule->accumulates, "accumulates");
  say(rule->may_be_identity(), "may_be_identity");
  return all;
}

// The operators of the TOSA graph, in their order, or the code of the refusal.
std::string integer_form(const Graph& graph) {
  const auto lowered = lower(graph);
  if (!lowered.ok()) return lowered.error().code;
  std::string form;
  for (const Node& node : lowered->graph.nodes)
    form += fmt::format("{}{}", form.empty() ? "" : " ", node.op.text().substr(node.op.text().find('.') + 1));
  return form;
}

struct Case {
  std::string rule, answers, call, form;
};

std::vector<Case> cases() {
  return {
      {"pointwise", "integer_form quantises tabulates maps_values", "%y: 1x4xi8<0.1:3> = aten.sigmoid.default(%a)",
       "table"},
      {"transparent", "integer_form quantises passes_values shares_scale maps_values may_be_identity",
       "%y: 4x1xi8<0.5:0> = aten.view.default(%a) {size=[4, 1]}", "reshape"},
      {"sum", "integer_form quantises adds linear", "%y: 1x4xi8<0.5:0> = aten.add.Tensor(%a, %b)",
       "rescale rescale add rescale"},
      {"product", "integer_form quantises linear", "%y: 1x4xi8<0.5:0> = aten.mul.Tensor(%a, %b)",
       "rescale rescale mul rescale"},
      {"magnitude", "integer_form quantises magnitude", "%y: 1x4xi8<0.5:0> = aten.hypot.default(%a, %b)",
       "rescale mul rescale mul add rescale table rescale rescale rescale table rescale rescale maximum rescale"},
      {"accumulate", "integer_form quantises accumulates", "%y: 1x1x1xi8<0.5:0> = aten.bmm.default(%rows, %columns)",
       "matmul rescale"},
      {"joined", "integer_form quantises joins_operands shares_scale",
       "%y: 2x4xi8<0.5:0> = aten.cat.default(%a, %b) {dim=0}", "rescale concat"},
      {"inside", "composite", "%y: 1x4xi8<0.1:3> = aten.softmax.int(%a) {dim=1}", "quantise.composite"},
      {"index", "integer_form may_be_identity", "%y: 1xi64 = aten.argmax.default(%a) {dim=1}", "argmax cast"},
      {"float_only", "", "%y: 1x4xbool = aten.isinf.default(%a)", "quantise.float-only"},
  };
}

TEST(Rules, answer_what_their_integer_forms_are) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.call);
    const auto graph = parse(
        "graph @main(%a: 1x4xi8<0.5:0>, %b: 1x4xi8<0.25:1>, %rows: 1x1x4xi8<0.5:0>, %columns: 1x4x1xi8<0.5:0>) -> "
        "(%y) {\n  " +
        one.call + "\n}");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Rule rule = find_aten(graph->nodes[0].op).rule;
    EXPECT_EQ(rule->name, one.rule);
    EXPECT_EQ(answers(rule), one.answers);
    EXPECT_EQ(integer_form(*graph), one.form);
  }
}

// Nobody has to ask whether an operator is known before its rule is asked.
TEST(Rules, operators_that_nobody_knows_stay_float) {
  EXPECT_EQ(find_aten(Operator("someones.operator.default")).rule->name, "float_only");
}

}  // namespace
}  // namespace tosaic
