// SPDX-License-Identifier: Apache-2.0
// What mathematics says of a tensor's values, without a sample: 0 to 1 behind a sigmoid, nothing negative behind a
// relu. An operator says it itself (AtenOp::bounds), or the TOSA operators in its lowering do (tosa::Op::bounds).
#include <algorithm>
#include <cmath>
#include <map>

#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

constexpr std::int64_t most_looked_at = 4096;  // elements of a constant

tosa::Bounds of_constant(const Value& value) {
  const std::int64_t n = value.type.shape.elements();
  if (!is_float(value.type.dtype) || value.type.quantised() || n == 0 || n > most_looked_at) return {};
  return tosa::bounds_of(value);
}

bool known(const tosa::Bounds& bounds) { return bounds.lowest > -INFINITY || bounds.highest < INFINITY; }

// Of the call's results, from those of its operands. Empty: not known.
std::vector<tosa::Bounds> of_call(const Graph& graph, const Node& node, const std::vector<tosa::Bounds>& bounds) try {
  auto trial = try_node(graph, node);
  if (!trial.ok()) return {};
  Graph& tosa = trial->graph;
  std::vector<tosa::Bounds> of(tosa.values.size());
  std::map<ValueId, ValueId> same;  // a tensor that is an operand twice, as in x * x
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = trial->operands[i];
    if (v == no_value) continue;
    of[v] = bounds[node.inputs[i]];
    const auto first = std::find(node.inputs.begin(), node.inputs.end(), node.inputs[i]) - node.inputs.begin();
    same[v] = trial->operands[static_cast<std::size_t>(first)];
  }
  for (Node& made : tosa.nodes) {
    for (ValueId& v : made.inputs)
      if (const auto it = same.find(v); it != same.end()) v = it->second;
    if (made.outputs.size() == 1)
      of[made.outputs[0]] = tosa::bounds_of(tosa::View(tosa, made), [&](std::size_t i) {
        const ValueId v = made.inputs[i];
        return v == no_value ? tosa::Bounds{} : tosa[v].is_constant() ? of_constant(tosa[v]) : of[v];
      });
  }
  std::vector<tosa::Bounds> found;
  for (ValueId v : trial->results) found.push_back(tosa[v].is_constant() ? of_constant(tosa[v]) : of[v]);
  return found;
} catch (const UnknownSize&) { return {}; }

tosa::Bounds both(const tosa::Bounds& a, const tosa::Bounds& b) {
  return {std::max(a.lowest, b.lowest), std::min(a.highest, b.highest)};
}

bool real(const Graph& graph, ValueId v) { return v != no_value && graph[v].type.dtype == DType::f32; }

// Can the call's lowering tell something? Sums and products of what may be anything are anything, but for squares.
bool worth_asking(const Node& node, Rule rule, const std::vector<tosa::Bounds>& bounds) {
  if (!rule->quantises() || rule->accumulates) return false;
  if (!rule->is_linear) return true;
  return (node.inputs.size() == 2 && node.inputs[0] == node.inputs[1]) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return v != no_value && known(bounds[v]); });
}

}  // namespace

std::vector<tosa::Bounds> known_bounds(const Expanded& program) {
  const Graph& graph = program.graph;
  std::vector<tosa::Bounds> bounds(graph.values.size());
  for (ValueId v = 0; v < bounds.size(); ++v)
    if (graph[v].is_constant()) bounds[v] = of_constant(graph[v]);
  for (const Node& node : graph.nodes) {
    const FoundOp found = find_aten(node.op);
    if (!found.op || std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId y) { return real(graph, y); }))
      continue;
    std::vector<tosa::Bounds> of;
    if (worth_asking(node, found.rule, bounds)) of = of_call(graph, node, bounds);
    of.resize(node.outputs.size());
    if (found.op->bounds) of[0] = both(of[0], *found.op->bounds);
    for (std::size_t i = 0; i < of.size(); ++i) {
      const ValueId y = node.outputs[i];
      if (!real(graph, y)) continue;
      bounds[y] = of[i];
      if (const auto it = program.bounds.find(y); it != program.bounds.end()) bounds[y] = both(of[i], it->second);
    }
  }
  return bounds;
}

}  // namespace tosaic
