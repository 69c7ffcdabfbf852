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
           bool float_ends, QuantisationPlan& plan)
      : graph_(graph), ranges_(ranges), histograms_(histograms), plan_(plan), made_by_(producers(graph)) {
    fixed_.assign(graph.values.size(), 0);
    for (ValueId v : graph.inputs) fixed_[plan.group[v]] |= !float_ends || !has_one_like(graph.outputs, v);
    for (ValueId v : graph.outputs) fixed_[plan.group[v]] |= !float_ends || !has_one_like(graph.inputs, v);
    for (const State& state : graph.states)
      for (ValueId v : {state.input, state.output}) fixed_[plan.group[v]] = 1;
    for (ValueId v = 0; v < plan.widths.size(); ++v)
      if (plan.widths[v] != Form::unset) fixed_[plan.group[v]] = 1;
    measure_steps();
  }

  void run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (plan_.floating(n) || !find_aten(node.op).rule->tabulates || node.outputs.size() != 1) continue;
      const auto [x, functions] = function_of(node);
      std::set<ValueId> groups;
      coarse_.clear();
      if (!may_widen(x) || !plan_.quantised[node.outputs[0]] || !loses_much(functions, x) || !refines(x, groups))
        continue;
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

  bool has_one_like(const std::vector<ValueId>& ends, ValueId v) const {
    return std::ranges::any_of(ends, [&](ValueId end) { return graph_[end].type.shape == graph_[v].type.shape; });
  }

  std::int64_t elements(ValueId v) const { return graph_[v].type.shape.elements(); }

  bool may_widen(ValueId v) const {
    return v != no_value && !graph_[v].is_constant() && plan_.quantised[v] && !plan_.wide[v] &&
           plan_.may_widen[plan_.group[v]] && !fixed_[plan_.group[v]] && may_be_wide(graph_, v);
  }

  // What a result is a function of, by which calls: of the first value that has 8 bits. In log(max(|x|, 1e-6)) what is
  // between has 16 bits of its own.
  std::pair<ValueId, std::vector<const Node*>> function_of(const Node& last) const {
    std::vector<const Node*> functions{&last};
    ValueId x = last.inputs.empty() ? no_value : last.inputs[0];
    while (x != no_value && plan_.wide[x] && made_by_[x] >= 0) {
      const Node& maker = graph_.nodes[static_cast<std::size_t>(made_by_[x])];
      if (!find_aten(maker.op).rule->maps_values() || maker.inputs.size() != 1 || maker.outputs.size() != 1) break;
      functions.insert(functions.begin(), &maker);
      x = maker.inputs[0];
    }
    return {x, functions};
  }

  // Is the error that x's steps make in the result so much more than the rounding of the result itself?
  bool loses_much(const std::vector<const Node*>& functions, ValueId x) const {
    constexpr double much = 8;  // 9 dB
    const auto range = ranges_.find(plan_.group[x]);
    if (range == ranges_.end() || !(range->second.highest > range->second.lowest)) return false;
    const double lowest = range->second.lowest, step = (range->second.highest - lowest) / steps, moved = step_[x] / 4;
    std::vector<double> at, y;
    for (int k = 0; k < steps; ++k)  // a quarter step beside either value: what rounding moves it by in the mean
      for (double beside : {-moved, moved}) at.push_back(std::max(lowest, lowest + (k + 0.5) * step + beside));
    y = at;
    for (const Node* function : functions) {
      const auto trial = try_in_shape(graph_, *function, Shape{2 * steps});
      if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
      auto results = computed_at(*trial, {y});
      if (!results.ok() || results->size() != at.size()) return false;
      y = *std::move(results);
    }
    const auto histogram = histograms_.find(plan_.group[x]);
    double error = 0, weight = 0, least = INFINITY, most = -INFINITY;
    for (std::size_t k = 0; k < steps; ++k) {
      const double a = y[2 * k], b = y[2 * k + 1];
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
      finer |= rule->accumulates || rule->tabulates || (rule->is_linear && !rule->adds && computed.size() > 1) ||
               (rule->adds && reduces);
      if (rule->passes_values) continue;
      for (ValueId operand : computed) {
        if (!(rule->is_linear || rule->accumulates) || groups.contains(plan_.group[operand])) continue;
        if (plan_.wide[operand] || may_widen(operand)) finer |= add_finer(operand, groups) || plan_.wide[operand];
      }
    }
    return finer;
  }
  // What enters where a tensor of its shape leaves with 16 bits: a state that the caller keeps, as an LSTM's.
  bool is_fed_back(ValueId v, const std::set<ValueId>& groups) const {
    const auto follows = [&](ValueId output) {
      return groups.contains(plan_.group[output]) && graph_[output].type.shape == graph_[v].type.shape;
    };
    return std::ranges::find(graph_.inputs, v) != graph_.inputs.end() && std::ranges::any_of(graph_.outputs, follows);
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
                          const std::map<ValueId, Histogram>& histograms, bool float_ends, QuantisationPlan& plan) {
  if (std::ranges::any_of(plan.may_widen, [](char may) { return may != 0; }))
    Widening(graph, ranges, histograms, float_ends, plan).run();
}

}  // namespace tosaic
