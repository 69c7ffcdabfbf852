// SPDX-License-Identifier: Apache-2.0
#include "quantise/finer_operands.h"

#include <algorithm>

#include "ops/rules/quantisation_rule.h"
#include "quantise/unlike_ranges.h"

namespace tosaic {

FinerOperands::FinerOperands(const Graph& graph, const std::map<ValueId, Range>& ranges, bool float_ends,
                             QuantisationPlan& plan)
    : graph_(graph), ranges_(ranges), plan_(plan), made_by_(producers(graph)) {
  fixed_.assign(graph.values.size(), 0);
  for (ValueId v : graph.inputs) fixed_[plan.group[v]] |= !float_ends || !has_one_like(graph.outputs, v);
  for (ValueId v : graph.outputs) fixed_[plan.group[v]] |= !float_ends || !has_one_like(graph.inputs, v);
  for (const State& state : graph.states)
    for (ValueId v : {state.input, state.output}) fixed_[plan.group[v]] = 1;
  for (ValueId v = 0; v < plan.widths.size(); ++v)
    if (plan.widths[v] != Form::unset) fixed_[plan.group[v]] = 1;
  measure_steps();
}

const Range* FinerOperands::range(ValueId v) const {
  const auto found = ranges_.find(plan_.group[v]);
  return found == ranges_.end() ? nullptr : &found->second;
}

bool FinerOperands::may_be_wide(ValueId v) const {
  return v != no_value && !graph_[v].is_constant() && plan_.quantised[v] && !plan_.wide[v] && !fixed_[plan_.group[v]] &&
         tosaic::may_be_wide(graph_, v);
}

bool FinerOperands::is_decided_wide(ValueId v) const {
  return v < plan_.widths.size() && plan_.widths[v] == Form::int16x8;
}

std::set<ValueId> FinerOperands::widen(ValueId v, double finest) {
  std::set<ValueId> groups, widened;
  coarse_.clear();
  finest_ = finest;
  if (!refines(v, groups)) return {};
  for (ValueId w = 0; w < graph_.values.size(); ++w) {
    if (!groups.contains(plan_.group[w])) continue;
    plan_.wide[w] = 1;
    widened.insert(w);
  }
  return widened;
}

// A sum is as coarse as what it is added up of: x + 1e-6 behind a pool, whose values have the scale of its input.
void FinerOperands::measure_steps() {
  step_.assign(graph_.values.size(), 0);
  for (ValueId v = 0; v < graph_.values.size(); ++v)
    if (const auto range = ranges_.find(plan_.group[v]); range != ranges_.end())
      step_[v] = (range->second.highest - range->second.lowest) / steps;
  for (const Node& node : graph_.nodes) {
    if (!find_aten(node.op).rule->adds || node.outputs.size() != 1) continue;
    for (ValueId v : node.inputs)
      if (v != no_value && !graph_[v].is_constant() && elements(v) == elements(node.outputs[0]))
        step_[node.outputs[0]] = std::max(step_[node.outputs[0]], step_[v]);
  }
}

bool FinerOperands::has_one_like(const std::vector<ValueId>& ends, ValueId v) const {
  return std::ranges::any_of(ends, [&](ValueId end) { return graph_[end].type.shape == graph_[v].type.shape; });
}

// Collects v's group, and those of what it is made of, where 16 bits hold more than 8 did. False: v is no finer than
// what it is made of, as x * 512 is no finer than x, whatever its bits.
bool FinerOperands::refines(ValueId v, std::set<ValueId>& groups) {
  groups.insert(plan_.group[v]);
  bool finer = false;
  for (ValueId w = 0; w < graph_.values.size(); ++w) {
    if (plan_.group[w] != plan_.group[v]) continue;
    finer |= is_fed_back(w, groups);
    if (made_by_[w] < 0) continue;
    const Node& maker = graph_.nodes[static_cast<std::size_t>(made_by_[w])];
    const Rule rule = find_aten(maker.op).rule;
    std::vector<ValueId> computed;
    for (ValueId operand : maker.inputs)
      if (operand != no_value && !graph_[operand].is_constant() && plan_.quantised[operand])
        computed.push_back(operand);
    const bool reduces = computed.size() == 1 && elements(w) < elements(computed[0]);
    finer |= rule->accumulates || rule->tabulates || rule->is_magnitude ||
             (rule->is_linear && !rule->adds && computed.size() > 1) || (rule->adds && reduces);
    if (rule->passes_values) continue;
    for (ValueId operand : computed) {
      if (!(rule->is_linear || rule->accumulates || rule->is_magnitude || (finest_ > 0 && rule->tabulates)) ||
          groups.contains(plan_.group[operand]) || step_[operand] < finest_)
        continue;
      if (plan_.wide[operand] || may_widen(operand)) finer |= add_finer(operand, groups) || plan_.wide[operand];
    }
  }
  return finer;
}
// What enters where a tensor of its shape leaves with 16 bits: a state that the caller keeps, as an LSTM's.
bool FinerOperands::is_fed_back(ValueId v, const std::set<ValueId>& groups) const {
  const auto follows = [&](ValueId output) {
    return groups.contains(plan_.group[output]) && graph_[output].type.shape == graph_[v].type.shape;
  };
  return std::ranges::find(graph_.inputs, v) != graph_.inputs.end() && std::ranges::any_of(graph_.outputs, follows);
}
bool FinerOperands::add_finer(ValueId v, std::set<ValueId>& groups) {
  std::set<ValueId> more = groups;
  if (coarse_.contains(plan_.group[v])) return false;
  if (!refines(v, more)) {
    coarse_.insert(plan_.group[v]);
    return false;
  }
  groups = std::move(more);
  return true;
}

bool any_may_widen(const QuantisationPlan& plan) {
  return std::ranges::any_of(plan.may_widen, [](char may) { return may != 0; });
}

}  // namespace tosaic
