// SPDX-License-Identifier: Apache-2.0
// Functions that the quantised values of their operand cannot follow: sin(512 x) of 256 quantised values goes around
// more than once from one quantised value to the next. They stay float, and so does what is computed for nobody else.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

// The mean change of f from one quantised value to the next, or on the way there (a wave may just have come round), as
// a part of its range.
double change_between_values(const Graph& graph, const Node& node) {
  const TensorType& type = graph[node.inputs[0]].type;
  const Scales& s = *type.scales;
  const auto limits = quantised_range(type);
  constexpr int points = 250;
  constexpr double steps[] = {0, 0.382, 1};
  auto trial = try_in_shape(graph, node, Shape{3 * points});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return 0;
  std::vector<double> at;
  for (int k = 0; k < points; ++k)
    for (double step : steps) {
      const double code = std::floor(static_cast<double>(limits.lowest) +
                                     static_cast<double>(limits.highest - limits.lowest - 1) * k / (points - 1));
      at.push_back((code + step - static_cast<double>(s.zero_point[0])) * s.scale[0]);
    }
  auto y = computed_at(*trial, {at});
  if (!y.ok() || y->size() != at.size()) return 0;
  double lowest = INFINITY, highest = -INFINITY, changes[] = {0, 0};
  int counted = 0;
  for (std::size_t k = 0; k + 2 < y->size(); k += 3) {
    const double* f = y->data() + k;
    if (!std::isfinite(f[0]) || !std::isfinite(f[1]) || !std::isfinite(f[2])) continue;
    for (std::size_t i : {0, 1}) changes[i] += std::fabs(f[i + 1] - f[0]);
    lowest = std::min({lowest, f[0], f[1], f[2]});
    highest = std::max({highest, f[0], f[1], f[2]});
    ++counted;
  }
  return counted > 0 && highest > lowest ? std::max(changes[0], changes[1]) / counted / (highest - lowest) : 0;
}

}  // namespace

void leave_unresolved_float(Graph& graph, const std::vector<char>& floating, const Sink& sink) {
  constexpr double too_much = 1.0 / 8;  // a sine is then a third of a period or so from code to code
  std::vector<char> in_float(graph.nodes.size(), 0);
  bool any = false;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (floating[n] || !find_aten(node.op).rule->tabulates || node.inputs.empty() || node.inputs[0] == no_value ||
        !graph[node.inputs[0]].type.quantised() || graph[node.inputs[0]].is_constant())
      continue;
    const double change = change_between_values(graph, node);
    if (!(change > too_much)) continue;
    in_float[n] = 1;
    any = true;
    if (sink)
      sink(located(warning("calibrate.unresolved",
                           fmt::format("{} changes by {:.0f}% of its range between neighbouring quantised values of "
                                       "its operand {}, whose step is {:.3g}: it stays float",
                                       node.op, 100 * change, graph[node.inputs[0]].name,
                                       graph[node.inputs[0]].type.scales->scale[0]))
                       .hint("reduce its argument first, or use --quantize int16x8"),
                   node.loc));
  }
  if (!any) return;
  const auto made_by = producers(graph);
  const auto read_by = consumers(graph);
  std::vector<char> is_output(graph.values.size(), 0), unquantised(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  const auto float_only = [&](ValueId v) {
    return v == no_value || (graph[v].type.quantised() && !is_output[v] && !read_by[v].empty() &&
                             std::all_of(read_by[v].begin(), read_by[v].end(), [&](auto n) { return in_float[n]; }));
  };
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const Rule rule = find_aten(node.op).rule;
    if (!in_float[n] && rule->quantises() && !rule->accumulates &&
        std::all_of(node.outputs.begin(), node.outputs.end(), float_only))
      in_float[n] = 1;
  }
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph[v].is_constant() || !graph[v].type.quantised() || !float_only(v)) continue;
    if (made_by[v] >= 0 && !in_float[static_cast<std::size_t>(made_by[v])]) continue;
    graph[v].type.dtype = DType::f32;
    graph[v].type.scales.reset();
  }
}

}  // namespace tosaic
