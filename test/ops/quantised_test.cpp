// SPDX-License-Identifier: Apache-2.0
// Every operator's domain in integers: the call is quantised on its own inputs, placed, lowered, and the integer
// graph runs on both executors with equal bits, before and after tidying. Each of its pieces, run on the quantised
// values that reach it, stays within two steps of what its function gives for the numbers that these quantised values
// stand for (integer_nodes.h); the whole stays near the float lowering of the call. A call that an integer target
// refuses says so in its operator's domain.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/cpu.h"
#include "integer_nodes.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/quantise.h"
#include "stored_values.h"
#include "tidy/tidy.h"

namespace tosaic::domain {
namespace {

bool all_finite(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    for (std::int64_t i = 0; is_float(t.type.dtype) && i < t.type.shape.elements(); ++i)
      if (!std::isfinite(element_as_double(t.type.dtype, t.data.data(), static_cast<std::size_t>(i)))) return false;
  return true;
}

bool any_float(const Graph& graph, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId v) { return is_float(graph[v].type.dtype); });
}

std::vector<ValueId> all_values(const Graph& graph) {
  std::vector<ValueId> list;
  for (const Node& node : graph.nodes)
    for (const auto* ids : {&node.inputs, &node.outputs}) list.insert(list.end(), ids->begin(), ids->end());
  std::erase(list, no_value);
  return list;
}

class Quantised : public testing::TestWithParam<const NamedAtenOp*> {
 protected:
  void check(Scheme scheme) {
    const NamedAtenOp& op = *GetParam();
    auto stored = load_values(op.file);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    for (std::size_t i = 0; i < op.op.domain.size() && i < stored->calls.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}: {}", op.file, op.op.domain[i]));
      auto parsed = parse(op, op.op.domain[i]);
      ASSERT_TRUE(parsed.ok());
      if (!parsed->refused.empty()) continue;  // not lowered at all
      auto inputs = stored->of(i, "in"), outputs = stored->of(i, "out");
      outputs.resize(std::min(outputs.size(), parsed->results));
      if (all_finite(inputs)) one(*parsed, program_of(*parsed, inputs, outputs), scheme);
    }
  }

  void one(const Case& parsed, Call call, Scheme scheme) {
    auto normal = normalise(call.graph, {}, {});
    ASSERT_TRUE(normal.ok()) << normal.error().message;
    call.graph = *normal;
    if (call.graph.nodes.empty()) return;
    QuantiseOptions options;
    options.scheme = scheme;
    options.observer = Observer::minmax;
    options.threads = 1;
    auto graph = quantise(call.graph, {call.inputs}, options, {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4");
    const std::string why = refusal(*graph, spec);
    std::string expected = scheme == Scheme::int8 ? parsed.no_int8 : parsed.no_int16;
    if (expected.empty() && says_float(parsed, call.graph)) {
      EXPECT_NE(why, "") << "taken, although its rule is to stay float\n" << print(*graph);
      return;
    }
    if (expected.empty() && makes_floats_of_integers(parsed, call.graph) && why == "target.unsupported") return;
    EXPECT_EQ(why, expected) << print(*graph);
    if (!why.empty()) return;
    std::vector<Tensor> quantised_values;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      quantised_values.push_back(quantise_as(call.inputs[i], (*graph)[graph->inputs[i]].type));
    std::vector<Tensor> results;
    ASSERT_NO_FATAL_FAILURE(run_everywhere(*graph, quantised_values, spec, results));
    if (!parsed.half) return;  // numerically extreme by design: a few bits say nothing about it
    ASSERT_NO_FATAL_FAILURE(check_nodes(parsed, *graph, quantised_values, spec, results));
    check_whole(parsed, call.graph, *graph, quantised_values, results, scheme);
  }

  // The code of the first reason why the target does not take the graph; empty: it takes it.
  static std::string refusal(const Graph& graph, const tosa::Spec& spec) {
    const auto used = used_values(graph);
    for (const Node& node : graph.nodes)
      if (auto able = can_lower(graph, node, used, spec); !able.ok()) {
        EXPECT_FALSE(able.error().internal) << able.error().message;
        return able.error().code;
      }
    return {};
  }

  static bool says_float(const Case& parsed, const Graph& graph) {
    const Rule rule = find_aten(Operator(parsed.schema->full_name())).rule;
    return !rule->has_integer_form && !rule->is_composite &&
           (any_float(graph, graph.inputs) || any_float(graph, all_values(graph)));
  }

  // Floats that come from integers alone may stay floats, because nothing was calibrated.
  static bool makes_floats_of_integers(const Case& parsed, const Graph& graph) {
    const bool literal = std::any_of(parsed.arguments.begin(), parsed.arguments.end(), [](const Argument& a) {
      return std::holds_alternative<double>(a.literal) || a.literal == Attr(DType::f32);
    });
    return !any_float(graph, graph.inputs) && (literal || any_float(graph, all_values(graph)));
  }

  // The integer graph as lowered and as tidied, on the interpreter and the CPU executor: the same bits.
  static void run_everywhere(const Graph& graph, const std::vector<Tensor>& quantised_values, const tosa::Spec& spec,
                             std::vector<Tensor>& results) {
    auto lowered = lower(graph, {.spec = &spec});
    ASSERT_TRUE(lowered.ok()) << lowered.error().message << "\n" << print(graph);
    auto legal = tosa::verify_graph(lowered->graph, spec);
    ASSERT_TRUE(legal.ok()) << legal.error().message << "\n" << print(lowered->graph);
    const std::vector<Tensor> bytes = as_bytes(quantised_values);
    auto exact = interp::run(lowered->graph, bytes);
    ASSERT_TRUE(exact.ok()) << exact.error().message << "\n" << print(lowered->graph);
    Graph tidied = lowered->graph;
    tidy(tidied);
    auto status = verify(tidied);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << print(tidied);
    auto tidy_result = interp::run(tidied, bytes);
    ASSERT_TRUE(tidy_result.ok()) << tidy_result.error().message << "\n" << print(tidied);
    auto program = cpu::Program::compile(tidied, {.threads = 2, .observed = {}});
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto fast = program->run(bytes);
    ASSERT_TRUE(fast.ok()) << fast.error().message;
    for (std::size_t k = 0; k < exact->size(); ++k) {
      EXPECT_EQ((*exact)[k].data, (*tidy_result)[k].data) << "tidy changes output " << k << "\n"
                                                          << print(lowered->graph) << print(tidied);
      EXPECT_EQ((*exact)[k].data, (*fast)[k].data) << "the CPU executor differs in output " << k << "\n"
                                                   << print(tidied);
    }
    std::vector<TensorType> types;
    for (ValueId v : graph.outputs) types.push_back(graph[v].type);
    results = under_types(*exact, types);
  }

  // Booleans and indices are exact. A product of quantised values and a constant may be off by more than two steps: the
  // constant has 16 bits of its largest element, and the result's step follows from what the samples showed, not from
  // what the operands could give.
  static void check_nodes(const Case& parsed, const Graph& graph, const std::vector<Tensor>& quantised_values,
                          const tosa::Spec& spec, const std::vector<Tensor>& results) {
    std::vector<Tensor> last;
    auto pieces = node_results(graph, quantised_values, spec, last);
    ASSERT_TRUE(pieces.ok()) << pieces.error().message << "\n" << print(graph);
    for (const NodeResult& piece : *pieces) {
      const bool scaled = piece.type.quantised();
      EXPECT_LE(piece.distance.worst, !scaled                                      ? 0
                                      : piece.rule->is_linear && !piece.rule->adds ? parsed.steps + 0.5
                                                                                   : parsed.steps)
          << "steps off: " << piece.op << " gives " << to_string(piece.type) << " in\n"
          << print(graph);
    }
    for (std::size_t k = 0; k < results.size(); ++k)
      EXPECT_EQ(results[k].data, last[k].data) << "the pieces together are not the whole, output " << k;
  }

  // Root mean square error of the results compared with the float program with its own weights: below two steps. With
  // int16x8 a step is 1/32767 of the range, and these are larger: weights have 8 bits, so products of them are off by
  // up to 1 percent of the signal; a table that stands in a composite is 512 lines, which do not follow a function
  // where it bends, and what is computed from them inherits that.
  static void check_whole(const Case& parsed, const Graph& floats, const Graph& graph,
                          const std::vector<Tensor>& quantised_values, const std::vector<Tensor>& results,
                          Scheme scheme) {
    auto lowered = lower(floats);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    interp::Options precise;
    precise.precise = true;
    auto want = interp::run(lowered->graph, reals(quantised_values), precise);
    ASSERT_TRUE(want.ok()) << want.error().message;
    double share = 0;
    if (scheme == Scheme::int16x8) {
      const bool composite = graph.nodes.size() > 1;
      for (const Node& node : graph.nodes) {
        const Rule rule = find_aten(node.op).rule;
        if (rule->tabulates) share = std::max(share, composite ? 0.0025 : 1.0);  // alone: check_nodes
        for (ValueId v : node.inputs)
          if (rule->accumulates && v != no_value && graph[v].is_constant()) share = std::max(share, 0.01);
      }
      if (parsed.share > 0) share = parsed.share;
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      const auto right = numbers((*want)[k]);
      const TensorType& type = graph[graph.outputs[k]].type;
      const Distance d = distance(right, right, results[k], type);
      EXPECT_LE(d.rms, type.quantised() ? std::max(2.0, share * d.signal) : 0)
          << "steps off, with a signal of " << d.signal << " steps, output " << k << " of\n"
          << print(graph);
    }
  }
};

TEST_P(Quantised, int8) { check(Scheme::int8); }
TEST_P(Quantised, int16x8) { check(Scheme::int16x8); }

std::vector<const NamedAtenOp*> every_operator() {
  std::vector<const NamedAtenOp*> result;
  for (const auto& op : all_aten()) result.push_back(&op);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Aten, Quantised, testing::ValuesIn(every_operator()),
                         [](const auto& instance) { return std::string(instance.param->file); });

}  // namespace
}  // namespace tosaic::domain
