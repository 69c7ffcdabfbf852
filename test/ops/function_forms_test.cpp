// SPDX-License-Identifier: Apache-2.0
// Functions of 16 bits in other forms than a table: each gives what the function gives, and the quantiser takes them
// where a table does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "interp/interp.h"
#include "ir/marks.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/function_forms.h"
#include "quantise/quantise.h"

namespace tosaic {
namespace {

constexpr std::int64_t many = 65535;

// y = op(x), of all quantised values of 16 bits but the lowest.
Graph call_of(std::string_view op, const Attrs& attrs, double x_reach, double y_reach) {
  Graph graph;
  Node node;
  node.op = Operator(op);
  node.attrs = attrs;
  const TensorType x{DType::i16, Shape{many}, Scales{{x_reach / 32767}, {0}}};
  node.inputs = {graph.add_value("x", x)};
  node.outputs = {graph.add_value("y", x.with(Scales{{y_reach / 32767}, {0}}))};
  graph.inputs = node.inputs;
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  return graph;
}

std::vector<std::int64_t> all_values() {
  std::vector<std::int64_t> all;
  for (std::int64_t q = -32767; q <= 32767; ++q) all.push_back(q);
  return all;
}

// The function at all quantised values, each moved by so many of its steps.
std::vector<double> function_at(const Graph& graph, double moved) {
  const double step = graph[graph.inputs[0]].type.scales->scale[0];
  std::vector<double> at;
  for (const std::int64_t q : all_values()) at.push_back((static_cast<double>(q) + moved) * step);
  const auto trial = try_in_shape(graph, graph.nodes[0], Shape{many});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return {};
  const auto y = computed_at(*trial, {at});
  return y.ok() && y->size() == at.size() ? *y : std::vector<double>();
}

struct Lowering {
  std::set<std::string> operators;
  std::vector<double> y;
};
Lowering lowered(const Graph& graph) {
  Lowering found;
  const auto program = lower(graph);
  EXPECT_TRUE(program.ok());
  if (!program.ok()) return found;
  for (const Node& node : program->graph.nodes) found.operators.insert(std::string(node.op.base()));
  const auto x = constant_bytes(DType::i16, all_values());
  const auto run = interp::run(program->graph, {{program->graph[program->graph.inputs[0]].type, x}});
  EXPECT_TRUE(run.ok());
  const double step = graph[graph.outputs[0]].type.scales->scale[0];
  for (std::int64_t i = 0; run.ok() && i < many; ++i)
    found.y.push_back(step * static_cast<double>(
                                 element_as_integer(DType::i16, run->at(0).data.data(), static_cast<std::size_t>(i))));
  return found;
}

struct Function {
  std::string op;
  Attrs attrs;
};

// Whatever an operator's lowering can compute in integers, it computes rightly, on wide ranges and narrow ones.
TEST(FunctionForms, in_integers_are_what_the_function_is) {
  std::vector<Function> functions{{"aten.threshold.default", {{"threshold", 0.1}, {"value", -1.0}}},
                                  {"aten.round.decimals", {{"decimals", std::int64_t{1}}}},
                                  {"aten.round.decimals", {{"decimals", std::int64_t{-1}}}},
                                  {"aten.hardshrink.default", {{"lambd", 0.7}}}};
  for (const NamedAtenOp& named : all_aten())
    for (const std::string_view text : named.op.schemas)
      if (const auto schema = parse_schema(text); schema.ok()) {
        const auto& arguments = schema->arguments;
        const bool of_one = !arguments.empty() && arguments[0].type == "Tensor" &&
                            std::all_of(arguments.begin() + 1, arguments.end(),
                                        [](const SchemaArgument& a) { return a.has_default && !a.is_tensor(); });
        const Operator op(schema->full_name());
        if (of_one && find_aten(op).rule->tabulates) functions.push_back({std::string(op.text()), {}});
      }
  std::set<std::string> in_integers;
  for (const auto& [op, attrs] : functions)
    for (const double reach : {1.7, 24.0, 300.0}) {
      SCOPED_TRACE(op + " up to " + std::to_string(reach));
      Graph graph = call_of(op, attrs, reach, reach);
      const auto y = function_at(graph, 0), below = function_at(graph, -0.5), above = function_at(graph, 0.5);
      if (y.empty() || below.empty() || above.empty()) continue;
      set_mark(graph.nodes[0], mark::integers, true);
      const Lowering found = lowered(graph);
      if (found.operators.contains("table") || found.operators.contains("gather")) continue;
      in_integers.insert(op);
      const double step = reach / 32767;
      for (std::size_t i = 0; i < found.y.size(); ++i) {
        const auto [least, most] = std::minmax({y[i], below[i], above[i]});
        ASSERT_GE(found.y[i], std::clamp(least, -reach, reach) - step) << "at " << static_cast<double>(i) - 32767;
        ASSERT_LE(found.y[i], std::clamp(most, -reach, reach) + step) << "at " << static_cast<double>(i) - 32767;
      }
    }
  for (const char* op : {"hardswish", "hardsigmoid", "hardshrink", "softshrink", "threshold", "floor", "ceil", "trunc",
                         "fix", "frac", "round"})
    EXPECT_TRUE(in_integers.contains("aten." + std::string(op) + ".default")) << op;
  EXPECT_TRUE(in_integers.contains("aten.round.decimals"));
  for (const char* op : {"tanh", "exp", "silu", "erf"})
    EXPECT_FALSE(in_integers.contains("aten." + std::string(op) + ".default")) << op;
}

TEST(FunctionForms, ties_go_to_even_in_integers) {
  Graph graph = call_of("aten.round.default", {}, 32767.0 / 64, 32767.0 / 64);
  set_mark(graph.nodes[0], mark::integers, true);
  const auto y = lowered(graph).y;
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], std::nearbyint((static_cast<double>(i) - 32767) / 64), i < 32 || i > 65502 ? 1.0 / 64 : 0)
        << static_cast<double>(i) - 32767;  // at the ends the result saturates
}

// Knots that lie closer to each other next to 0: nearer to the function, and one table where it is flat beyond.
TEST(FunctionForms, finer_tables_are_nearer) {
  for (const std::string_view op : {"aten.tanh.default", "aten.asinh.default"}) {
    double before = 1;
    for (const std::int64_t finer : {1, 4}) {
      SCOPED_TRACE(std::string(op) + " " + std::to_string(finer));
      Graph graph = call_of(op, {}, 60, op == "aten.tanh.default" ? 1 : 6);
      set_mark(graph.nodes[0], mark::finer, finer);
      const auto y = function_at(graph, 0);
      const Lowering found = lowered(graph);
      EXPECT_EQ(found.operators.contains("add"), finer > 1 && op == "aten.asinh.default");
      double error = 0;
      for (std::size_t i = 0; i < found.y.size(); ++i) error = std::max(error, std::fabs(found.y[i] - y[i]));
      EXPECT_LT(error, before / (finer > 1 ? 3 : 1));
      before = error;
    }
  }
}

// The calls of the quantised program by their forms: "floor integers, tanh".
std::string forms(const std::string& body, double size, QuantiseOptions options = {.scheme = Scheme::int16x8}) {
  auto graph = parse("graph @main(%x: 1x4096xf32, %u: 1x4096xf32) -> (%z) {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  std::vector<std::vector<Tensor>> samples(4);
  for (auto& sample : samples)
    for (const ValueId v : graph->inputs) {
      std::vector<double> content(4096);
      for (double& c : content) c = size * normal(random);
      sample.push_back({(*graph)[v].type, constant_bytes(DType::f32, std::span<const double>(content))});
    }
  options.threads = 1;
  const auto quantised = quantise(*std::move(graph), samples, options, {});
  EXPECT_TRUE(quantised.ok()) << quantised.error().message;
  std::string text;
  for (const Node& node : quantised->nodes) {
    if (!find_aten(node.op).rule->tabulates) continue;
    text += (text.empty() ? "" : ", ") + std::string(node.op.base());
    if (has_mark(node, mark::integers)) text += " integers";
    if (has_mark(node, mark::finer)) text += " finer";
  }
  return text;
}

std::string of(const std::string& op, const std::string& attrs = "") {
  return "  %s: 1x4096xf32 = aten.add.Tensor(%x, %u)\n  %z: 1x4096xf32 = aten." + op + ".default(%s)" + attrs;
}

TEST(FunctionForms, are_taken_where_a_table_loses) {
  EXPECT_EQ(forms(of("floor"), 1), "floor integers");
  EXPECT_EQ(forms(of("round"), 1), "round integers");
  EXPECT_EQ(forms(of("round"), 30), "round integers");  // no table of all values
  EXPECT_EQ(forms(of("hardshrink", " {lambd=3.0}"), 1), "hardshrink integers");
  EXPECT_EQ(forms(of("hardswish"), 3), "hardswish integers");
  EXPECT_EQ(forms(of("asinh"), 100), "asinh finer");
  for (const char* op : {"relu", "sigmoid", "silu", "tanh"}) EXPECT_EQ(forms(of(op), 1).find(' '), std::string::npos);
}

TEST(FunctionForms, are_tables_in_8_bits_and_beside_weights_that_lose_more) {
  EXPECT_EQ(forms(of("floor"), 1, {}), "floor");
  EXPECT_EQ(forms(of("hardswish"), 3, {}), "hardswish");
  const std::string layer =
      "  %w: 1x1xf32 = constant [1.0]\n  %s: 1x4096xf32 = aten.add.Tensor(%x, %u)\n"
      "  %r: 4096x1xf32 = aten.view.default(%s) {size=[4096, 1]}\n"
      "  %l: 4096x1xf32 = aten.linear.default(%r, %w, none)\n";
  EXPECT_EQ(forms(layer + "  %z: 4096x1xf32 = aten.hardswish.default(%l)", 3), "hardswish");
  EXPECT_EQ(forms(layer + "  %z: 4096x1xf32 = aten.round.default(%l)", 3), "round integers");
}

// The scale of a function's operand, of a range of several hundreds.
double operand_scale(const std::string& body) {
  auto graph = parse("graph @main(%x: 1x64xf32, %u: 1x64xf32) -> (%z) {\n" + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  std::vector<double> content;
  for (int i = 0; i < 64; ++i) content.push_back((i - 32) * 10);
  const Tensor x{(*graph)[graph->inputs[0]].type, constant_bytes(DType::f32, std::span<const double>(content))};
  const auto quantised = quantise(*std::move(graph), {{x, x}}, {.scheme = Scheme::int16x8, .threads = 1}, {});
  EXPECT_TRUE(quantised.ok()) << quantised.error().message;
  for (const Value& v : quantised->values)
    if (v.name == "s" && v.type.quantised()) return v.type.scales->scale[0];
  ADD_FAILURE();
  return 0;
}

TEST(FunctionForms, ranges_end_where_the_functions_that_read_them_are_flat) {
  const std::string sum = "  %s: 1x64xf32 = aten.add.Tensor(%x, %u)\n", tanh = "aten.tanh.default(%s)\n";
  const auto reach = [](const std::string& body) { return operand_scale(body) * 32767 / 1.5; };
  EXPECT_NEAR(reach(sum + "  %z: 1x64xf32 = " + tanh), 6, 1);
  EXPECT_NEAR(reach(sum + "  %z: 1x64xf32 = aten.sigmoid.default(%s)\n"), 12, 1);
  EXPECT_GT(reach(sum + "  %z: 1x64xf32 = aten.silu.default(%s)\n"), 500);  // not above 0
  const std::string two = sum + "  %t: 1x64xf32 = " + tanh;
  EXPECT_NEAR(reach(two + "  %e: 1x64xf32 = aten.sigmoid.default(%s)\n  %z: 1x64xf32 = aten.add.Tensor(%t, %e)"), 12,
              1);
  EXPECT_GT(reach(two + "  %z: 1x64xf32 = aten.add.Tensor(%t, %s)"), 500);  // which reads it, too
  EXPECT_NEAR(reach(sum + "  %v: 64x1xf32 = aten.view.default(%s) {size=[64, 1]}\n"
                          "  %z: 64x1xf32 = aten.tanh.default(%v)"),
              6, 1);
}

}  // namespace
}  // namespace tosaic
