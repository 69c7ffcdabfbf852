// SPDX-License-Identifier: Apache-2.0
// What rows and operators say that results lie between, on every operator's domain: compared with what the interpreter
// computes for each TOSA node, in floats and in integers, and with PyTorch's answers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "integer_nodes.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/builder_bounds.h"
#include "quantise/plan.h"
#include "quantise/quantise.h"
#include "stored_values.h"

namespace tosaic::domain {
namespace {

using tosa::Bounds;

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> all(static_cast<std::size_t>(tensor.type.shape.elements()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = element_as_double(tensor.type.dtype, tensor.data.data(), i);
  return all;
}

// The narrowest there are; none of what is not finite.
Bounds extent(const std::vector<double>& all) {
  Bounds found{INFINITY, -INFINITY};
  for (double x : all) {
    if (!std::isfinite(x)) return {};
    found = {std::min(found.lowest, x), std::max(found.highest, x)};
  }
  return all.empty() ? Bounds{} : found;
}

bool holds(const Bounds& outer, const Bounds& inner) {
  return outer.lowest <= inner.lowest && outer.highest >= inner.highest;
}

// What rounding may add to x.
double slack(double x, DType dtype) {
  const double unit = !is_float(dtype) ? 0 : dtype == DType::f32 ? 2e-6 : dtype == DType::f16 ? 1e-3 : 8e-3;
  return std::isfinite(x) ? unit * std::max(1.0, std::fabs(x)) : 0;
}

std::string outside(const Bounds& bounds, const std::vector<double>& all, DType dtype) {
  for (double x : all)
    if (std::isfinite(x) &&
        (x < bounds.lowest - slack(bounds.lowest, dtype) || x > bounds.highest + slack(bounds.highest, dtype)))
      return fmt::format("{} is not in [{}, {}]", x, bounds.lowest, bounds.highest);
  return "";
}

// What each row with bounds says, about the operands as they are and about wider ones.
class Rows {
 public:
  std::set<std::string_view> seen;

  void check(Graph graph, std::vector<Tensor> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)  // bytes, to a target
      if (inputs[i].type.dtype == DType::u8) inputs[i].type.dtype = graph[graph.inputs[i]].type.dtype;
    graph.outputs.clear();
    for (const Node& node : graph.nodes)
      graph.outputs.insert(graph.outputs.end(), node.outputs.begin(), node.outputs.end());
    auto results = interp::run(graph, inputs);
    ASSERT_TRUE(results.ok()) << results.error().message;
    std::vector<std::vector<double>> of(graph.values.size());
    for (ValueId v = 0; v < of.size(); ++v)
      if (graph[v].is_constant()) of[v] = elements({graph[v].type, graph[v].constant});
    for (std::size_t i = 0; i < inputs.size(); ++i) of[graph.inputs[i]] = elements(inputs[i]);
    for (std::size_t i = 0; i < results->size(); ++i) of[graph.outputs[i]] = elements((*results)[i]);
    for (const Node& node : graph.nodes) {
      const tosa::Op* row = tosa::find(node.op);
      if (!row || node.outputs.size() != 1) continue;
      SCOPED_TRACE(node.op.text());
      if (row->bounds) check_bounds(graph, node, of);
      if (row->chooses()) check_choice(graph, node, of);
      seen.insert(row->name);
    }
  }

 private:
  static void check_bounds(const Graph& graph, const Node& node, const std::vector<std::vector<double>>& of) {
    const tosa::View view(graph, node);
    std::vector<Bounds> in;
    for (ValueId v : node.inputs) in.push_back(v == no_value ? Bounds{} : extent(of[v]));
    const auto said = [&] { return tosa::bounds_of(view, [&](std::size_t i) { return in[i]; }); };
    const Bounds found = said();
    const DType dtype = view.out().dtype;
    const auto fits = is_float(dtype) || dtype == DType::boolean ? Bounds{}
                                                                 : Bounds{static_cast<double>(range_of(dtype).lowest),
                                                                          static_cast<double>(range_of(dtype).highest)};
    if (holds(fits, found)) { EXPECT_EQ(outside(found, of[node.outputs[0]], dtype), "") << print(graph); }
    for (std::size_t i = 0; i < in.size(); ++i) {
      const Bounds exact = in[i];
      const double more = exact.highest - exact.lowest;
      for (const Bounds& wider :
           {Bounds{exact.lowest - more, exact.highest}, Bounds{exact.lowest, exact.highest + more},
            Bounds{exact.lowest, INFINITY}, Bounds{}}) {
        in[i] = wider;
        const Bounds now = said();
        EXPECT_TRUE(holds(now, found)) << fmt::format("operand {} in [{}, {}] gives [{}, {}], less than [{}, {}]", i,
                                                      wider.lowest, wider.highest, now.lowest, now.highest,
                                                      found.lowest, found.highest);
      }
      in[i] = exact;
    }
  }

  // An attribute's number is rounded to the dtype.
  static bool near(const std::set<double>& known, double x) {
    const auto at = known.lower_bound(x - slack(x, DType::f32));
    return at != known.end() && *at <= x + slack(x, DType::f32);
  }

  // Each element is an operand's, an end that an attribute gives, or a boolean; CAST gives it another dtype.
  static void check_choice(const Graph& graph, const Node& node, const std::vector<std::vector<double>>& of) {
    if (node.inputs.empty() || graph[node.inputs[0]].type.dtype != graph[node.outputs[0]].type.dtype) return;
    std::set<double> known;
    for (ValueId v : node.inputs)
      if (v != no_value) known.insert(of[v].begin(), of[v].end());
    if (graph[node.outputs[0]].type.dtype == DType::boolean) known.insert({0, 1});
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* number = std::get_if<double>(&attr)) known.insert(*number);
      if (const auto* number = std::get_if<std::int64_t>(&attr)) known.insert(static_cast<double>(*number));
    }
    for (double x : of[node.outputs[0]])
      EXPECT_TRUE(std::isnan(x) || known.count(x) || near(known, x)) << x << " is none of the operands' elements";
  }
};

// Calls `check(case, inputs, PyTorch's outputs)` for each call that is lowered.
template <class F>
void each_call(F check) {
  for (const NamedAtenOp& op : all_aten()) {
    auto stored = load_values(op.file);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    for (std::size_t i = 0; i < op.op.domain.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}: {}", op.file, op.op.domain[i]));
      auto parsed = parse(op, op.op.domain[i]);
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      if (!parsed->refused.empty()) continue;
      auto outputs = stored->of(i, "out");
      outputs.resize(std::min(outputs.size(), parsed->results));
      check(*parsed, stored->of(i, "in"), outputs);
    }
  }
}

TEST(Bounds, of_every_row) {
  Rows rows;
  const auto spec = *tosa::Spec::parse("TOSA-1.0+INT+int16+int4");
  each_call([&](const Case& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    auto lowered = lower_case(c, c.schema->full_name(), inputs, outputs, DType::f32);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    rows.check(lowered->graph, lowered->inputs);
    Call call = program_of(c, inputs, outputs);
    for (const Tensor& t : call.inputs)
      if (is_float(t.type.dtype) && extent(elements(t)) == Bounds{}) return;  // nothing to choose scales from
    auto normal = normalise(call.graph, {}, {});
    if (!normal.ok() || normal->nodes.empty()) return;
    for (const Scheme scheme : {Scheme::int8, Scheme::int16x8}) {
      auto quantised = quantise(*normal, {call.inputs}, {.scheme = scheme, .threads = 1}, {});
      if (!quantised.ok()) continue;
      auto integers = lower(*quantised, {.spec = &spec});
      if (!integers.ok()) continue;  // quantised_test says which may refuse
      std::vector<Tensor> quantised_values;
      for (std::size_t i = 0; i < call.inputs.size(); ++i)
        quantised_values.push_back(quantise_as(call.inputs[i], (*quantised)[quantised->inputs[i]].type));
      rows.check(integers->graph, quantised_values);
    }
  });
  for (const tosa::Op& row : tosa::all())
    EXPECT_TRUE(row.newer || (!row.bounds && !row.chooses()) || rows.seen.count(row.name))
        << row.name << " is in no operator's lowering";
}

TEST(Bounds, of_every_operator) {
  each_call([&](const Case& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    auto normal = normalise(program_of(c, inputs, outputs).graph, {}, {});
    if (!normal.ok()) return;
    const std::vector<ValueId> results = normal->outputs;
    auto program = expanded(std::move(*normal));
    ASSERT_TRUE(program.ok()) << program.error().message;
    const auto bounds = known_bounds(*program);
    for (std::size_t k = 0; k < outputs.size() && k < results.size(); ++k)
      if (is_float(outputs[k].type.dtype)) {
        EXPECT_EQ(outside(bounds[results[k]], elements(outputs[k]), DType::f32), "") << "output " << k;
      }
  });
}

// A channel of large bias and small factor next to one of small bias and large factor.
TEST(PossibleOverflow, is_by_channel) {
  const auto graph = [](const char* biases) {
    return tosaic::parse(
        std::string("graph @main(%x: 1x1x4x1xi16<0.1:0>) -> (%y) {\n"
                    "  %w: 2x1x1x1xi8 = constant [0, 127]\n  %b: 2xi48 = constant ") +
        biases +
        "\n  %zx: 1xi16 = constant [0]\n  %zw: 1xi8 = constant [0]\n  %zc: 1xi48 = constant [0]\n"
        "  %m: 2xi16 = constant [16384, 16384]\n  %s: 2xi8 = constant [40, 15]\n"
        "  %c: 1x1x4x2xi48 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=[0, 0, 0, 0], stride=[1, 1], "
        "dilation=[1, 1], acc_type=i48, local_bound=false}\n"
        "  %y: 1x1x4x2xi16<0.1:0> = tosa.rescale(%c, %m, %s, %zc, %zx) {scale32=false, "
        "rounding_mode=\"single_round\", per_channel=true, input_unsigned=false, output_unsigned=false}\n}\n");
  };
  const auto fits = graph("[137438953472, 0]"), exceeds = graph("[0, 137438953472]");
  ASSERT_TRUE(fits.ok() && exceeds.ok());
  EXPECT_FALSE(possible_overflow(*fits, 0));
  EXPECT_TRUE(possible_overflow(*exceeds, 0));
}

}  // namespace
}  // namespace tosaic::domain
