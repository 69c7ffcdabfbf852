// SPDX-License-Identifier: Apache-2.0
#include "quantise/whole_results.h"

#include <algorithm>
#include <cmath>

#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

// Does a call give whole numbers, of others or of whole ones?
bool gives_whole(const Graph& graph, const Node& node, bool of_whole) {
  constexpr int half = 32;
  const auto trial = try_in_shape(graph, node, Shape{2 * half});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
  std::vector<double> at;
  for (int i = -half; i < half; ++i) at.push_back(of_whole ? i : i * 0.7381 + 0.1234);
  const auto y = computed_at(*trial, {at});
  return y.ok() && std::ranges::all_of(*y, [](double v) { return v == std::floor(v) && std::isfinite(v); });
}

}  // namespace

std::vector<char> groups_of_whole_numbers(const Graph& graph, const QuantisationPlan& plan) {
  std::vector<char> whole(graph.values.size(), 0), any(graph.values.size(), 0), others(graph.values.size(), 0);
  const auto is_quantised = [&](ValueId v) { return v != no_value && plan.quantised[v] && !graph[v].is_constant(); };
  for (const Node& node : graph.nodes) {
    const auto computed = std::ranges::count_if(node.inputs, is_quantised);
    const bool one = computed == 1 && is_quantised(node.inputs[0]);
    const Rule rule = find_aten(node.op).rule;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId y = node.outputs[i];
      if (!is_quantised(y)) continue;
      if (one && rule->passes_values)
        whole[y] = whole[node.inputs[0]];
      else if (one && i == 0 && (rule->tabulates || rule->is_linear))
        whole[y] = gives_whole(graph, node, whole[node.inputs[0]] != 0);
    }
  }
  for (ValueId v = 0; v < plan.group.size(); ++v)
    if (is_quantised(v)) (whole[v] ? any : others)[plan.group[v]] = 1;
  for (ValueId v = 0; v < any.size(); ++v) any[v] = any[v] && !others[v];
  return any;
}

Range with_whole_steps(Range range, double steps) {
  const double width = range.highest - range.lowest, step = width / steps;
  if (!(step > 0) || step > 1) return range;
  range.highest = range.lowest + std::exp2(std::ceil(std::log2(step))) * steps;
  return range;
}

}  // namespace tosaic
