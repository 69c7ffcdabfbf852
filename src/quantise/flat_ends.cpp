// SPDX-License-Identifier: Apache-2.0
#include "quantise/flat_ends.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/rules/quantisation_rule.h"
#include "quantise/function_in_parts.h"

namespace tosaic {
namespace {

constexpr int points = 256;        // at which a function is looked at, on either side of 0
constexpr double seen = 2;         // as far as these times the range
constexpr double tellable = 0.25;  // of a step of the result

// Of the range, what the function is not flat beyond; null: nobody knows.
std::optional<Range> bent_part(const Graph& graph, const Node& node, const Range& range, double step) {
  Range bent;
  for (const double side : {-1.0, 1.0}) {
    const double end = side < 0 ? -range.lowest : range.highest;
    if (!(end > 0)) continue;
    std::vector<double> at;
    for (int k = 0; k <= points; ++k) at.push_back(side * seen * end * k / points);
    const auto y = results_at(graph, node, at);
    if (!y || !std::ranges::all_of(*y, [](double v) { return std::isfinite(v); })) return std::nullopt;
    std::size_t first = at.size() - 1;
    while (first > 0 && std::fabs((*y)[first - 1] - y->back()) <= tellable * step) --first;
    bent.include(side * std::min(std::fabs(at[first]), end));
  }
  return bent;
}

}  // namespace

std::set<ValueId> end_where_flat(const Graph& graph, const QuantisationPlan& plan, std::map<ValueId, Range>& ranges) {
  std::map<ValueId, std::vector<std::size_t>> readers;  // of groups, which are tables
  std::set<ValueId> kept;                               // groups that others read
  for (const auto& ends : {graph.inputs, graph.outputs})
    for (const ValueId v : ends) kept.insert(plan.group[v]);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId v : node.inputs) {
      if (v == no_value || graph[v].is_constant() || !plan.quantised[v]) continue;
      const bool alone = !plan.floating(n) && node.outputs.size() == 1 && plan.quantised[node.outputs[0]];
      const ValueId y = alone ? node.outputs[0] : no_value;
      const Rule rule = find_aten(node.op).rule;
      if (alone && rule->tabulates && plan.wide[y])
        readers[plan.group[v]].push_back(n);
      else if (!alone || !rule->passes_values || plan.group[y] != plan.group[v])
        kept.insert(plan.group[v]);
    }
  }
  std::set<ValueId> ended;
  for (const auto& [group, nodes] : readers) {
    const auto range = ranges.find(group);
    if (kept.contains(group) || range == ranges.end() || !plan.wide[group]) continue;
    for (bool nearer = true; nearer;) {
      Range bent;
      for (const std::size_t n : nodes) {
        const Range& result = ranges.at(plan.group[graph.nodes[n].outputs[0]]);
        const double step = std::max(-result.lowest, result.highest) / 32767;
        bent.include(bent_part(graph, graph.nodes[n], range->second, step).value_or(range->second));
      }
      const double was = range->second.highest - range->second.lowest, now = bent.highest - bent.lowest;
      nearer = now > 0 && now < was / 2;  // then its points are, too
      if (now > 0 && now < was) {
        range->second.lowest = bent.lowest;
        range->second.highest = bent.highest;
        ended.insert(group);
      }
    }
  }
  return ended;
}

}  // namespace tosaic
