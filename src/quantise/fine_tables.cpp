// SPDX-License-Identifier: Apache-2.0
#include "quantise/fine_tables.h"

#include <algorithm>
#include <cmath>

#include "ir/marks.h"
#include "ops/computed.h"
#include "ops/fine_table.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

constexpr double share_unseen = 1.0 / 1024;  // of elements at a quantised value, where nobody counted: a quarter in all
constexpr double tolerable = 1.0 / 1024;     // of the result's range: what rounding to 8 bits costs, or 60 dB

// The squared error that the lines between the first knots next to 0 make, in the mean over all elements. `side`: 1
// above 0, -1 below.
double error_next_to_zero(const Graph& graph, const Node& node, double step, double side, const Range& result,
                          const Histogram* histogram) {
  constexpr int between = 128, last = 2 * between;
  std::vector<double> at;
  for (int q = 0; q <= last; ++q) at.push_back(side * q * step);
  const auto trial = try_in_shape(graph, node, Shape{last + 1});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return 0;
  auto y = computed_at(*trial, {at});
  if (!y.ok() || y->size() != at.size()) return 0;
  for (double& v : *y) v = std::clamp(v, result.lowest, result.highest);
  if (std::ranges::any_of(*y, [](double v) { return std::isnan(v); })) return 0;
  double error = 0;
  for (int q = 1; q < last; ++q) {
    if (q == between) continue;
    const auto first = static_cast<std::size_t>(q < between ? 0 : between);
    const double along = (q - static_cast<double>(first)) / between;
    const double line = (*y)[first] + ((*y)[first + between] - (*y)[first]) * along;
    const double off = (*y)[static_cast<std::size_t>(q)] - line;
    error +=
        off * off * (histogram ? histogram->share(at[static_cast<std::size_t>(q)] - step / 2, step) : share_unseen);
  }
  return error;
}

bool may_be_fine(const Node& node) {
  return find_aten(node.op).rule->tabulates && node.outputs.size() == 1 && node.outputs[0] != no_value &&
         !node.inputs.empty() && node.inputs[0] != no_value;
}

// `counted`: of x's elements; null: nobody did.
bool loses_next_to_zero(const Graph& graph, const Node& node, const Range& range, const Range& result,
                        const Histogram* counted) {
  const double step = std::max(std::fabs(range.lowest), std::fabs(range.highest)) / 32767;
  const double width = result.highest - result.lowest;
  if (!(step > 0) || !(width > 0)) return false;
  double error = error_next_to_zero(graph, node, step, 1, result, counted);
  if (range.lowest < 0) error += error_next_to_zero(graph, node, step, -1, result, counted);
  return error > width * tolerable * width * tolerable;
}

}  // namespace

std::vector<std::size_t> fine_tables(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                     const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan) {
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (plan.floating(n) || !may_be_fine(node)) continue;
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (!plan.quantised[x] || !plan.quantised[y] || !plan.wide[x]) continue;
    const auto range = ranges.find(plan.group[x]), result = ranges.find(plan.group[y]);
    const auto histogram = histograms.find(plan.group[x]);
    if (range == ranges.end() || result == ranges.end() || (histogram == histograms.end() && !histograms.empty()))
      continue;
    if (loses_next_to_zero(graph, node, range->second, result->second,
                           histogram == histograms.end() ? nullptr : &histogram->second))
      found.push_back(n);
  }
  return found;
}

void mark_fine_tables(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (!may_be_fine(node)) continue;
    const TensorType &x = graph[node.inputs[0]].type, &y = graph[node.outputs[0]].type;
    if (x.dtype != DType::i16 || !x.quantised() || !y.quantised() || !x.scales->per_tensor() || !y.scales->per_tensor())
      continue;
    const auto range_of_type = [](const TensorType& type) {
      const tosa::Bounds ends = reals_of(type);
      return Range{ends.lowest, ends.highest};
    };
    if (loses_next_to_zero(graph, node, range_of_type(x), range_of_type(y), nullptr)) set_mark(node, mark::fine, true);
  }
}

}  // namespace tosaic
