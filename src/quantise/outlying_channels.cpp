// SPDX-License-Identifier: Apache-2.0
#include "quantise/outlying_channels.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

#include "ops/rules/quantisation_rule.h"
#include "quantise/finer_operands.h"

namespace tosaic {
namespace {

// By how much the error that the steps of a norm's rows make in its result exceeds that of rounding the result, as a
// ratio of squares. A residual stream without outliers has 1 at most, and its errors add up from norm to norm.
constexpr double much_of_norm = 1.5;
// What part of the energy of a layer's result the steps of its operand may take: 17 dB.
constexpr double much_of_layer = 0.02;
constexpr double coarse_enough = 0.25;  // operands with smaller steps make a 16th of the error at most

class Outliers {
 public:
  Outliers(const Graph& graph, const std::map<ValueId, Range>& ranges, bool float_ends, QuantisationPlan& plan)
      : graph_(graph), read_by_(consumers(graph)), operands_(graph, ranges, float_ends, plan) {}

  void widen_norms(const std::vector<RowNorm>& norms) {
    for (const RowNorm& norm : norms)
      if (loses_much(norm)) widen(norm.source);
  }

  void widen_layers(const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan) {
    for (const Node& node : graph_.nodes) {
      const auto gain = gain_of_channels(node);
      if (!gain) continue;
      const auto results = histograms.find(plan.group[node.outputs[0]]);
      const double step = operands_.step(node.inputs[0]), error = *gain * step * step / 12;
      if (results != histograms.end() && error > much_of_layer * results->second.variance()) widen(node.inputs[0]);
    }
  }

  std::set<ValueId> widened;

 private:
  void widen(ValueId x) {
    if (operands_.may_be_wide(x)) widened.merge(operands_.widen(x, coarse_enough * operands_.step(x)));
  }

  // Rows are divided by their size, so the norm's own result has the outliers that they have. What its weight makes of
  // that is what counts.
  bool loses_much(const RowNorm& norm) const {
    ValueId v = norm.result;
    double gain = 1;
    while (read_by_[v].size() == 1) {
      const Node& reader = graph_.nodes[read_by_[v][0]];
      const auto more = gain_of_elements(reader);
      if (!more) break;
      gain *= *more;
      v = reader.outputs[0];
    }
    return v != norm.result && exceeds_rounding(gain, norm.result, v);
  }

  // Is the error that x's steps make in y so much more than the rounding of y? `gain`: of x's error, squared.
  bool exceeds_rounding(double gain, ValueId x, ValueId y) const {
    const Range *from = operands_.range(x), *to = operands_.range(y);
    if (!from || !to) return false;
    const double before = from->highest - from->lowest, after = to->highest - to->lowest;
    return after > 0 && gain * before * before > much_of_norm * after * after;
  }

  // The mean square of what a call multiplies each element with; nothing where it does something else to them.
  std::optional<double> gain_of_elements(const Node& node) const {
    const Rule rule = find_aten(node.op).rule;
    const auto computed = [&](ValueId v) { return v != no_value && !graph_[v].is_constant(); };
    if (node.outputs.size() != 1 || !computed(node.inputs[0]) || std::ranges::count_if(node.inputs, computed) != 1 ||
        elements(node.outputs[0]) != elements(node.inputs[0]))
      return std::nullopt;
    if (rule->passes_values || rule->adds) return 1;
    if (rule->accumulates) {
      const auto gain = gain_of_channels(node);
      return gain && elements(node.inputs[1]) == channels(node) ? gain : std::nullopt;
    }
    const ValueId weight = node.inputs.size() > 1 ? node.inputs[1] : no_value;
    return rule->is_linear && weight != no_value ? sum_of_squares(weight, elements(weight)) : std::nullopt;
  }

  // The sum of a channel's squared weights, in the mean, where each result adds up products of one channel: of a
  // depthwise convolution.
  std::optional<double> gain_of_channels(const Node& node) const {
    if (!find_aten(node.op).rule->accumulates || node.attrs.get_or<std::int64_t>("groups", 1) == 1 ||
        graph_[node.inputs[1]].type.rank() < 3 || graph_[node.inputs[1]].type.shape.size(1) != 1)
      return std::nullopt;
    return sum_of_squares(node.inputs[1], channels(node));
  }
  std::int64_t channels(const Node& node) const { return graph_[node.inputs[1]].type.shape.size(0); }

  std::optional<double> sum_of_squares(ValueId weight, std::int64_t divisor) const {
    if (weight == no_value || !graph_[weight].is_constant() || graph_[weight].type.dtype != DType::f32 || divisor < 1)
      return std::nullopt;
    const auto w = graph_[weight].constant.as<float>().first(static_cast<std::size_t>(elements(weight)));
    return std::inner_product(w.begin(), w.end(), w.begin(), 0.0) / static_cast<double>(divisor);
  }

  std::int64_t elements(ValueId v) const { return graph_[v].type.shape.elements(); }

  const Graph& graph_;
  const std::vector<std::vector<std::uint32_t>> read_by_;
  FinerOperands operands_;
};

}  // namespace

std::set<ValueId> widen_outlying_channels(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                          const std::map<ValueId, Histogram>& histograms,
                                          const std::vector<RowNorm>& norms, bool float_ends, QuantisationPlan& plan) {
  if (!any_may_widen(plan)) return {};
  Outliers outliers(graph, ranges, float_ends, plan);
  outliers.widen_norms(norms);
  outliers.widen_layers(histograms, plan);
  return std::move(outliers.widened);
}

}  // namespace tosaic
