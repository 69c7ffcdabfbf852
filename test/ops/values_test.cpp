// SPDX-License-Identifier: Apache-2.0
// Every operator's domain, in every mode, against what PyTorch computed (README.md). The loop is here; what an
// operator is tested with, and its exceptions with their reasons, stand in the operator's own file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu.h"
#include "formats/tosa/tosa_file.h"
#include "formats/tosa_080/tosa_080.h"
#include "interp/interp.h"
#include "ir/tosa_operators.h"
#include "lower/lower.h"
#include "ops/rules/quantisation_rule.h"
#include "stored_values.h"

namespace tosaic::domain {
namespace {

class Values : public testing::TestWithParam<const NamedAtenOp*> {
 protected:
  // Calls `check(case, inputs, outputs)` for each call of the operator.
  template <class F>
  void each_case(F check) {
    const NamedAtenOp& op = *GetParam();
    auto stored = load_values(op.file);
    ASSERT_TRUE(stored.ok()) << stored.error().message << "\nrun test/ops/make_values.py";
    ASSERT_EQ(stored->calls.size(), op.op.domain.size()) << "run test/ops/make_values.py";
    for (std::size_t i = 0; i < op.op.domain.size(); ++i) {
      ASSERT_EQ(stored->calls[i], op.op.domain[i]) << "run test/ops/make_values.py";
      auto parsed = parse(op, op.op.domain[i]);
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      SCOPED_TRACE(fmt::format("{}: {}", op.file, op.op.domain[i]));
      auto outputs = stored->of(i, "out");
      outputs.resize(std::min(outputs.size(), parsed->results));
      if (!parsed->refused.empty()) {
        auto lowered = lower_case(*parsed, full_name(*parsed), stored->of(i, "in"), outputs, DType::f32);
        EXPECT_TRUE(!lowered.ok() && lowered.error().code == parsed->refused && !lowered.error().help.empty());
        continue;
      }
      check(*parsed, stored->of(i, "in"), outputs);
    }
  }

  static std::string full_name(const Case& c) { return c.schema->full_name(); }
};

std::string why(const Diagnostic& d) {
  std::string text = d.code + ": " + d.message;
  for (const auto& note : d.notes) text += "; " + note;
  return text;
}

std::vector<Tensor> run(const Lowered& lowered, bool precise) {
  interp::Options options;
  options.precise = precise;
  auto results = interp::run(lowered.graph, lowered.inputs, options);
  if (results.ok()) return *results;
  ADD_FAILURE() << why(results.error()) << "\n" << print(lowered.graph);
  return {};
}

Result<std::vector<Tensor>> run_on_cpu(const Lowered& lowered) {
  cpu::Options options;
  options.threads = 1;
  TOSAIC_TRY(auto program, cpu::Program::compile(lowered.graph, options));
  return program.run(lowered.inputs);
}

void expect_equal(const std::vector<Tensor>& want, const std::vector<Tensor>& got, double rtol, double atol,
                  const Graph& graph) {
  ASSERT_EQ(want.size(), got.size());
  for (std::size_t k = 0; k < want.size(); ++k)
    EXPECT_EQ(difference(narrowed(want[k]), narrowed(got[k]), rtol, atol), "") << "output " << k << " of\n"
                                                                               << print(graph);
}

TEST_P(Values, f32) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto lowered = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error());
    for (std::size_t k = 0; k < std::min(outputs.size(), lowered->graph.outputs.size()); ++k)
      EXPECT_EQ(to_string(lowered->graph[lowered->graph.outputs[k]].type), to_string(narrowed(outputs[k]).type));
    expect_equal(outputs, run(*lowered, false), c.rtol, c.atol, lowered->graph);
  });
}

// The double-precision run that tables are made from: it must be as good, rounded to f32.
TEST_P(Values, f64) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto lowered = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error());
    expect_equal(outputs, run(*lowered, true), c.rtol, c.atol, lowered->graph);
  });
}

// No further from the number itself than the nearest f32, to a millionth. What that leaves open are roots and quotients
// all but halfway between two floats, as that of the largest f32: no whole number is there.
void expect_nearest(const std::vector<Tensor>& numbers, const std::vector<Tensor>& got, const Graph& graph) {
  ASSERT_EQ(numbers.size(), got.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].type.dtype, DType::f32);
    const Tensor exact = converted_to(numbers[k], DType::f64);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got[k].type.shape.elements()); ++i) {
      const double number = element_as_double(DType::f64, exact.data.data(), i);
      const double found = element_as_double(DType::f32, got[k].data.data(), i), nearest = static_cast<float>(number);
      if (found == nearest || (std::isnan(found) && std::isnan(nearest))) continue;
      EXPECT_LE(std::fabs(found - number), 1.000001 * std::fabs(nearest - number) + 1e-37)
          << "element " << i << " is " << found << " instead of " << nearest << " of\n"
          << print(graph);
    }
  }
}

// Where the rounding of a call shows, it is lowered otherwise by the operators that say so: as good on all executors,
// and quotients and roots are the nearest f32, as PyTorch's.
TEST_P(Values, exact) {
  if (!GetParam()->op.has_exact_form) return;
  bool differs = false;
  each_case([&](const Case& c, const auto& inputs, const auto& outputs) {
    Case exact = c;
    exact.arguments.push_back({.name = "exact", .literal = Attr(true)});
    auto plain = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    auto lowered = lower_case(exact, full_name(c), inputs, outputs, DType::f32);
    ASSERT_TRUE(plain.ok() && lowered.ok()) << why(lowered.error());
    if (plain->graph.nodes.size() == lowered->graph.nodes.size()) return;
    differs = true;
    const bool nearest = full_name(c).find(".div.") != std::string::npos || GetParam()->file == "sqrt";
    const std::vector<Tensor> numbers = run(*lowered, true);
    expect_equal(outputs, numbers, c.rtol, c.atol, lowered->graph);
    const auto results = run_on_cpu(*lowered);
    ASSERT_TRUE(results.ok()) << why(results.error()) << print(lowered->graph);
    for (const auto& got : {run(*lowered, false), *results}) {
      expect_equal(outputs, got, c.rtol, c.atol, lowered->graph);
      if (nearest) expect_nearest(numbers, got, lowered->graph);
    }
  });
  EXPECT_TRUE(differs);
}

// Half precision against the double-precision run of the same call on the same rounded inputs. The bound is a
// few units in the last place, relative to the result or to 1, since intermediate values are of that size.
void check_half(const Case& c, std::vector<Tensor> inputs, const std::vector<Tensor>& outputs, DType half, double ulp) {
  if (!c.half) return;
  for (Tensor& t : inputs)
    if (t.type.dtype == DType::f32) t = converted_to(converted_to(t, half), DType::f32);
  auto exact = lower_case(c, c.schema->full_name(), inputs, outputs, DType::f32);
  ASSERT_TRUE(exact.ok()) << why(exact.error());
  auto lowered = lower_case(c, c.schema->full_name(), inputs, outputs, half);
  ASSERT_TRUE(lowered.ok()) << why(lowered.error());
  expect_equal(run(*exact, true), run(*lowered, false), 1 * ulp, 0.25 * ulp, lowered->graph);
}

TEST_P(Values, f16) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    check_half(c, inputs, outputs, DType::f16, std::ldexp(1.0, -10));
  });
}

TEST_P(Values, bf16) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    check_half(c, inputs, outputs, DType::bf16, std::ldexp(1.0, -7));
  });
}

// What TOSA 0.80 can say of a lowering is the same graph when its file is read back: equal in all results.
TEST_P(Values, tosa_080) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto lowered = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error());
    const Graph& graph = lowered->graph;
    for (const Node& node : graph.nodes)
      if (tosa_080::beyond(tosa::View(graph, node))) return;
    for (const Value& v : graph.values)
      if (v.type.dtype == DType::i64 || v.type.dtype == DType::f64 || v.type.dtype == DType::u8 ||
          v.type.shape.is_empty())
        return;
    auto file = tosa_080::write(graph);
    ASSERT_TRUE(file.ok()) << why(file.error());
    const Bytes bytes = file->joined();
    ASSERT_TRUE(tosa_080::is_080(bytes));
    auto back = tosa_file::read(bytes, "back.tosa");
    ASSERT_TRUE(back.ok()) << why(back.error());
    EXPECT_EQ(back->nodes.size(), graph.nodes.size());
    const Status holds = tosa::verify_graph(*back, tosa::Spec::everything());
    EXPECT_TRUE(holds.ok()) << why(holds.error());
    auto results = interp::run(*back, lowered->inputs, {});
    ASSERT_TRUE(results.ok()) << why(results.error()) << print(*back);
    expect_equal(run(*lowered, false), *results, 0, 0, *back);
  });
}

// The CPU executor against the interpreter, on the same graph: integers and booleans are equal.
TEST_P(Values, cpu) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto lowered = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error());
    const auto results = run_on_cpu(*lowered);
    ASSERT_TRUE(results.ok()) << why(results.error()) << print(lowered->graph);
    expect_equal(run(*lowered, false), *results, c.rtol, c.atol, lowered->graph);
  });
}

bool asks_for(const Case& c, DType dtype) {
  return std::any_of(c.arguments.begin(), c.arguments.end(),
                     [&](const Argument& a) { return a.literal == Attr(dtype); });
}

// Outside delegates int64 stays int64: the same calls with all integers wide, on both executors. Nothing may be cut to
// 32 bits on the way, but for indices, which are saturated first, and for who asks.
TEST_P(Values, wide) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto counts = [](const Tensor& t) { return t.type.dtype == DType::i32 || t.type.dtype == DType::i64; };
    if (std::none_of(inputs.begin(), inputs.end(), counts) && std::none_of(outputs.begin(), outputs.end(), counts))
      return;
    auto lowered = lower_case(c, full_name(c), inputs, outputs, DType::f32, false, Integers::wide);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error());
    const Graph& graph = lowered->graph;
    const auto made_by = producers(graph);
    for (const Node& node : graph.nodes) {
      if (node.op != tosa::op::cast || asks_for(c, DType::i32)) continue;
      if (graph[node.inputs[0]].type.dtype != DType::i64 || graph[node.outputs[0]].type.dtype != DType::i32) continue;
      const auto maker = made_by[node.inputs[0]];
      EXPECT_TRUE(maker >= 0 && graph.nodes[static_cast<std::size_t>(maker)].op == tosa::op::minimum) << print(graph);
    }
    std::vector<std::vector<Tensor>> runs{run(*lowered, false)};
    cpu::Options options;
    options.threads = 1;
    auto program = cpu::Program::compile(graph, options);
    ASSERT_TRUE(program.ok()) << why(program.error()) << print(graph);
    auto results = program->run(lowered->inputs);
    ASSERT_TRUE(results.ok()) << why(results.error()) << print(graph);
    runs.push_back(*results);
    for (const auto& got : runs) {
      ASSERT_EQ(outputs.size(), got.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_TRUE(outputs[k].type.dtype != DType::i64 || got[k].type.dtype == DType::i64) << print(graph);
        // What PyTorch computed in 32 bits are the low ones.
        const Tensor found = counts(got[k]) ? converted_to(got[k], outputs[k].type.dtype) : got[k];
        EXPECT_EQ(difference(outputs[k], found, c.rtol, c.atol), "") << "output " << k << " of\n" << print(graph);
      }
    }
  });
}

// A composite is made of ATen calls alone, so that each piece can be quantised by its own rule; lowered one by
// one, the pieces mean what the composite means.
TEST_P(Values, pieces) {
  if (!GetParam()->op.rule->is_composite) return;
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    auto composite = lower_case(c, full_name(c), inputs, outputs, DType::f32, true);
    ASSERT_TRUE(composite.ok()) << why(composite.error());
    for (const Node& node : composite->graph.nodes) EXPECT_TRUE(node.op.is_aten()) << print(composite->graph);
    auto lowered = lower(composite->graph);
    ASSERT_TRUE(lowered.ok()) << why(lowered.error()) << "\n" << print(composite->graph);
    composite->graph = lowered->graph;
    expect_equal(outputs, run(*composite, false), c.rtol, c.atol, composite->graph);
  });
}

bool same_arguments(const Schema& a, const Schema& b) {
  return std::equal(
      a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
      [](const SchemaArgument& x, const SchemaArgument& y) { return x.name == y.name && x.type == y.type; });
}

// relu_ means what relu means: an in-place overload of the same name lowers to the same graph.
TEST_P(Values, in_place) {
  each_case([](const Case& c, const auto& inputs, const auto& outputs) {
    const std::string twin = fmt::format("{}.{}_.{}", c.schema->ns, c.schema->name, c.schema->overload);
    FoundOp found = find_aten(Operator(twin));
    if (!found.op || !same_arguments(*found.schema, *c.schema)) return;
    // PyTorch refuses to write a result of another shape or dtype into self.
    if (inputs.empty() || outputs[0].type != inputs[0].type) return;
    auto plain = lower_case(c, full_name(c), inputs, outputs, DType::f32);
    auto changed = lower_case(c, twin, inputs, outputs, DType::f32);
    ASSERT_TRUE(plain.ok() && changed.ok());
    EXPECT_EQ(print(plain->graph), print(changed->graph));
  });
}

std::vector<const NamedAtenOp*> operators() {
  std::vector<const NamedAtenOp*> result;
  for (const auto& op : all_aten()) result.push_back(&op);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Aten, Values, testing::ValuesIn(operators()), [](const auto& instance) {
  std::string name(instance.param->file);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(AtenTable, every_schema_parses_and_every_overload_has_a_value) {
  for (const auto& op : all_aten()) {
    EXPECT_FALSE(op.op.summary.empty()) << op.file;
    EXPECT_FALSE(op.op.lower.empty()) << op.file;
    EXPECT_FALSE(op.op.domain.empty()) << op.file;
    std::vector<std::string> used;
    for (auto text : op.op.domain)
      if (auto parsed = parse(op, text); parsed.ok()) used.push_back(parsed->schema->full_name());
    for (auto text : op.op.schemas) {
      auto schema = parse_schema(text);
      ASSERT_TRUE(schema.ok()) << op.file << ": " << text;
      EXPECT_EQ(find_aten(Operator(schema->full_name())).op, &op.op) << schema->full_name() << " stands in two files";
      // cmake/operator_names.cmake found the schema, too: the operator has a constant, where C++ allows its name.
      const std::string name = schema->full_name();
      const auto known = known_operators();
      const bool nameable = !schema->name.ends_with('_') && name.find("__") == std::string::npos;
      EXPECT_EQ(std::ranges::any_of(known, [&](const OperatorName* k) { return k->text == name; }), nameable) << name;
      if (!schema->in_place) {
        EXPECT_NE(std::find(used.begin(), used.end(), schema->full_name()), used.end())
            << op.file << ": no call of " << schema->full_name() << " in the domain";
      }
    }
  }
}

}  // namespace
}  // namespace tosaic::domain
