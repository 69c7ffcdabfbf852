// SPDX-License-Identifier: Apache-2.0
#include "normalise/integer_bounds.h"

#include <algorithm>

namespace tosaic {
namespace {

// Doubles count up to here. An end beyond is somewhere beyond.
constexpr double counted = 0x1p53;
tosa::Bounds within_counted(const tosa::Bounds& b) {
  return {b.lowest <= -counted ? tosa::Bounds{}.lowest : std::min(b.lowest, counted),
          b.highest >= counted ? tosa::Bounds{}.highest : std::max(b.highest, -counted)};
}

bool counts(DType type) { return is_integer(type) || type == DType::boolean; }

// What the operator's definition says of an integer result: of integers, or of floats (CAST, ARGMAX). CAST wraps what
// does not fit.
tosa::Bounds of_result(const Graph& graph, const Node& node, const std::vector<IntegerBounds>& of) try {
  const DType type = graph[node.outputs[0]].type.dtype;
  const tosa::Bounds whole = tosa::bounds_of(type);
  if (!is_integer(type) || node.outputs.size() != 1 || node.inputs.empty()) return whole;
  const tosa::Bounds said = tosa::bounds_of(tosa::View(graph, node), [&](std::size_t i) {
    return node.inputs[i] == no_value ? tosa::Bounds{} : tosa::Bounds(of[node.inputs[i]]);
  });
  const bool wraps = node.op == tosa::op::cast && (said.lowest < whole.lowest || said.highest > whole.highest);
  return said == tosa::Bounds{} || wraps ? whole : said;
} catch (const UnknownSize&) { return tosa::bounds_of(graph[node.outputs[0]].type.dtype); }

}  // namespace

IntegerBounds integer_bounds(const Value& constant) {
  if (!counts(constant.type.dtype)) return {};
  return {within_counted(tosa::bounds_of(constant))};
}

std::vector<IntegerBounds> integer_bounds(const Trial& trial, const std::vector<IntegerBounds>& operands) {
  const Graph& graph = trial.graph;
  std::vector<IntegerBounds> of;
  for (const Value& value : graph.values)
    of.push_back(value.is_constant() ? integer_bounds(value)
                                     : IntegerBounds{within_counted(tosa::bounds_of(value.type.dtype))});
  for (std::size_t i = 0; i < trial.operands.size(); ++i)
    if (const ValueId v = trial.operands[i]; v != no_value && !graph[v].is_constant()) of[v] = operands[i];
  for (const Node& node : graph.nodes) {
    const bool assumed = std::ranges::any_of(node.inputs, [&](ValueId v) { return v != no_value && of[v].assumed; });
    for (ValueId v : node.outputs) of[v] = {within_counted(of_result(graph, node, of)), assumed};
  }
  return of;
}

}  // namespace tosaic
