// SPDX-License-Identifier: Apache-2.0
#include "quantise/steep_functions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/finer_operands.h"

namespace tosaic {
namespace {

constexpr int steps = FinerOperands::steps;

class Widening {
 public:
  Widening(const Graph& graph, const std::map<ValueId, Range>& ranges, const std::map<ValueId, Histogram>& histograms,
           bool float_ends, QuantisationPlan& plan)
      : graph_(graph),
        histograms_(histograms),
        plan_(plan),
        made_by_(producers(graph)),
        operands_(graph, ranges, float_ends, plan) {}

  void run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (plan_.floating(n) || node.outputs.size() != 1) continue;
      const Rule rule = find_aten(node.op).rule;
      if (rule->is_magnitude) widen_legs(node);
      if (!rule->tabulates) continue;
      const auto [x, functions] = function_of(node);
      const bool may_be_finer = operands_.may_widen(x) || operands_.is_decided_wide(x);
      if (may_be_finer && plan_.quantised[node.outputs[0]] && loses_much(functions, x)) operands_.widen(x);
    }
  }

 private:
  const Graph& graph_;
  const std::map<ValueId, Histogram>& histograms_;
  const QuantisationPlan& plan_;
  const std::vector<std::int32_t> made_by_;
  FinerOperands operands_;

  // A length changes by no more than its legs do, whose steps are twice as large as they have a sign.
  void widen_legs(const Node& node) {
    constexpr double much = 1.5;
    const double own = operands_.step(node.outputs[0]);
    for (const ValueId leg : node.inputs)
      if (operands_.may_widen(leg) && operands_.step(leg) > much * own) operands_.widen(leg);
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
    const Range* range = operands_.range(x);
    if (!range || !(range->highest > range->lowest)) return false;
    const double lowest = range->lowest, step = (range->highest - lowest) / steps, moved = operands_.step(x) / 4;
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
};

}  // namespace

void widen_steep_operands(const Graph& graph, const std::map<ValueId, Range>& ranges,
                          const std::map<ValueId, Histogram>& histograms, bool float_ends, QuantisationPlan& plan) {
  if (any_may_widen(plan)) Widening(graph, ranges, histograms, float_ends, plan).run();
}

}  // namespace tosaic
