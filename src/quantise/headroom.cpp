// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/marks.h"
#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

// Is the function that reads its operand, defined on the quantised values of the range, undefined on those with that
// much room? Where quantised values of a side are only there because all quantised values are symmetric (below 0 of a
// variance), nobody asks.
bool undefined_beyond(const Graph& graph, const Node& node, const Range& range) {
  auto trial = try_in_shape(graph, node, Shape{2});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
  const double largest = std::max(-range.lowest, range.highest) * int16_headroom;
  auto y = computed_at(*trial, {{range.lowest < 0 ? -largest : largest, range.highest > 0 ? largest : -largest}});
  return y.ok() && std::any_of(y->begin(), y->end(), [](double value) { return !std::isfinite(value); });
}

// Many elements lie next to a pole at 0, as quiet ones do before a logarithm, and what comes to 0 in quantised values
// gets the end of the result's range: that is to be the least that the samples show.
bool ends_at_zero(const Graph& graph, const Node& node) {
  if (!has_mark(node, mark::finer)) return false;
  auto trial = try_in_shape(graph, node, Shape{1});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
  auto y = computed_at(*trial, {{0.0}});
  return y.ok() && !y->empty() && !std::isfinite(y->front());
}

}  // namespace

std::vector<char> without_headroom(const Graph& graph, const std::vector<Range>& ranges) {
  std::vector<char> none(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    if (!find_aten(node.op).rule->tabulates || node.inputs.empty() || node.inputs[0] == no_value) continue;
    const ValueId x = node.inputs[0];
    const double largest = std::max(-ranges[x].lowest, ranges[x].highest);
    if (!none[x] && largest > 0 && undefined_beyond(graph, node, ranges[x])) none[x] = 1;
    if (ends_at_zero(graph, node)) none[node.outputs[0]] = 1;
  }
  return none;
}

}  // namespace tosaic
