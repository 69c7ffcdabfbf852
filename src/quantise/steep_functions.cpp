// SPDX-License-Identifier: Apache-2.0
#include "quantise/steep_functions.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/unlike_ranges.h"

namespace tosaic {
namespace {

constexpr int steps = 255;  // between 8-bit values

class Widening {
 public:
  Widening(const Graph& graph, const std::map<ValueId, Range>& ranges, const std::map<ValueId, Histogram>& histograms,
           QuantisationPlan& plan)
      : graph_(graph), ranges_(ranges), histograms_(histograms), plan_(plan), made_by_(producers(graph)) {
    fixed_.assign(graph.values.size(), 0);
    for (const auto& ends : {graph.inputs, graph.outputs})
      for (ValueId v : ends) fixed_[plan.group[v]] = 1;
    for (ValueId v = 0; v < plan.widths.size(); ++v)
      if (plan.widths[v] != Form::unset) fixed_[plan.group[v]] = 1;
    measure_steps();
  }

  void run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (plan_.floating(n) || !find_aten(node.op).rule->tabulates || node.outputs.size() != 1) continue;
      const ValueId x = node.inputs.empty() ? no_value : node.inputs[0];
      std::set<ValueId> groups;
      coarse_.clear();
      if (!may_widen(x) || !plan_.quantised[node.outputs[0]] || !loses_much(node, x) || !refines(x, groups)) continue;
      for (ValueId v = 0; v < graph_.values.size(); ++v)
        if (groups.contains(plan_.group[v])) plan_.wide[v] = 1;
    }
  }

 private:
  const Graph& graph_;
  const std::map<ValueId, Range>& ranges_;
  const std::map<ValueId, Histogram>& histograms_;
  QuantisationPlan& plan_;
  const std::vector<std::int32_t> made_by_;
  std::vector<char> fixed_;           // by group: its width is not ours to choose
  std::vector<double> step_;          // of the 8-bit values that v is, or is added up of; 0: not known
  mutable std::set<ValueId> coarse_;  // groups found to be no finer in 16 bits

  // A sum is as coarse as what it is added up of: x + 1e-6 behind a pool, whose values have the scale of its input.
  void measure_steps() {
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

  std::int64_t elements(ValueId v) const { return graph_[v].type.shape.elements(); }

  bool may_widen(ValueId v) const {
    return v != no_value && !graph_[v].is_constant() && plan_.quantised[v] && !plan_.wide[v] &&
           plan_.may_widen[plan_.group[v]] && !fixed_[plan_.group[v]] && may_be_wide(graph_, v);
  }

  // Is the error that x's steps make in the result so much more than the rounding of the result itself?
  bool loses_much(const Node& node, ValueId x) const {
    constexpr double much = 8;  // 9 dB
    const auto range = ranges_.find(plan_.group[x]);
    if (range == ranges_.end() || !(range->second.highest > range->second.lowest)) return false;
    const auto trial = try_in_shape(graph_, node, Shape{2 * steps});
    if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
    const double lowest = range->second.lowest, step = (range->second.highest - lowest) / steps, moved = step_[x] / 4;
    std::vector<double> at;
    for (int k = 0; k < steps; ++k)  // a quarter step beside either value: what rounding moves it by in the mean
      for (double beside : {-moved, moved}) at.push_back(std::max(lowest, lowest + (k + 0.5) * step + beside));
    const auto y = computed_at(*trial, {at});
    if (!y.ok() || y->size() != at.size()) return false;
    const auto histogram = histograms_.find(plan_.group[x]);
    double error = 0, weight = 0, least = INFINITY, most = -INFINITY;
    for (std::size_t k = 0; k < steps; ++k) {
      const double a = (*y)[2 * k], b = (*y)[2 * k + 1];
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const double share =
          histogram == histograms_.end() ? 1 : histogram->second.share(lowest + static_cast<double>(k) * step, step);
      if (share == 0) continue;  // the result's range is that of what the samples show
      error += share * (b - a) * (b - a) / 3;
      weight += share;
      least = std::min({least, a, b});
      most = std::max({most, a, b});
    }
    if (!(weight > 0) || !(most > least)) return false;
    const double own = (most - least) / steps;
    return error / weight > much * own * own / 12;
  }

  // Collects v's group, and those of what it is made of, where 16 bits hold more than 8 did. False: v is no finer than
  // what it is made of, as x * 512 is no finer than x, whatever its bits.
  bool refines(ValueId v, std::set<ValueId>& groups) const {
    groups.insert(plan_.group[v]);
    bool finer = false;
    for (ValueId w = 0; w < graph_.values.size(); ++w) {
      if (plan_.group[w] != plan_.group[v] || made_by_[w] < 0) continue;
      const Node& maker = graph_.nodes[static_cast<std::size_t>(made_by_[w])];
      const Rule rule = find_aten(maker.op).rule;
      std::vector<ValueId> computed;
      for (ValueId operand : maker.inputs)
        if (operand != no_value && !graph_[operand].is_constant() && plan_.quantised[operand])
          computed.push_back(operand);
      const bool reduces = computed.size() == 1 && elements(w) < elements(computed[0]);
      finer |= rule->accumulates || rule->tabulates || (rule->is_linear && !rule->adds && computed.size() > 1) ||
               (rule->adds && reduces);
      if (rule->passes_values) continue;
      for (ValueId operand : computed)
        if ((rule->is_linear || rule->accumulates) && !groups.contains(plan_.group[operand]) && may_widen(operand))
          finer |= add_finer(operand, groups);
    }
    return finer;
  }
  bool add_finer(ValueId v, std::set<ValueId>& groups) const {
    std::set<ValueId> more = groups;
    if (coarse_.contains(plan_.group[v])) return false;
    if (!refines(v, more)) {
      coarse_.insert(plan_.group[v]);
      return false;
    }
    groups = std::move(more);
    return true;
  }
};

}  // namespace

void widen_steep_operands(const Graph& graph, const std::map<ValueId, Range>& ranges,
                          const std::map<ValueId, Histogram>& histograms, QuantisationPlan& plan) {
  if (std::ranges::any_of(plan.may_widen, [](char may) { return may != 0; }))
    Widening(graph, ranges, histograms, plan).run();
}

}  // namespace tosaic
