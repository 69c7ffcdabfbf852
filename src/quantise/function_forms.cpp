// SPDX-License-Identifier: Apache-2.0
#include "quantise/function_forms.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/marks.h"
#include "ops/computed.h"
#include "ops/finer_table.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/form_trial.h"

namespace tosaic {
namespace {

constexpr double share_unseen = 1.0 / 1024;  // of elements at a quantised value next to 0, where nobody counted
constexpr int next_to_zero = 2 * 128;        // quantised values up to the second knot

// Of a function of one tensor, whose other operands are numbers.
bool may_have_forms(const Node& node) {
  return find_aten(node.op).rule->tabulates && node.outputs.size() == 1 && node.outputs[0] != no_value &&
         !node.inputs.empty() && node.inputs[0] != no_value;
}

// The error of a table, squared, from which on other forms are tried: so much of the result's power, and of its width.
struct Tolerable {
  double of_power = 0, of_width = 0;
};
constexpr Tolerable beside_16_bits{.of_power = 0x1p-25};  // 75 dB
constexpr Tolerable beside_weights{.of_power = 1e-6};     // 60 dB: layers whose weights have 8 bits leave 40 to 50
constexpr Tolerable inside_8_bits{.of_width = 0x1p-20};   // of what composites have in 16 bits
constexpr double gain = 4;                                // what other forms are to gain: 6 dB

bool has_narrow_weights(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return find_aten(node.op).rule->accumulates && std::ranges::any_of(node.inputs, [&](ValueId v) {
             return v != no_value && graph[v].is_constant() && graph[v].type.quantised() &&
                    storage_size(graph[v].type.dtype) == 1;
           });
  });
}

// A function of quantised values that is looked for a form.
struct Function {
  const Graph& graph;
  std::size_t node;
  Scales x;
  TensorType y;
  double lowest;             // of x
  const Histogram* counted;  // x's elements; null: nobody did
  bool near_alone;           // only what is lost next to 0 counts
  const Tolerable& tolerable;
};

// The forms on each quantised value of x, or outside of what is next to 0 on every so many, whose scale is so many
// times larger: where jumps lie between knots is luck.
FormTrial trial_of(const Function& function, std::int64_t every, double larger = 1) {
  constexpr std::int64_t last = 32767;
  constexpr double share_elsewhere = (1 - 2 * next_to_zero * share_unseen) / (2 * last);
  Scales x = function.x;
  x.scale[0] *= larger;
  const double step = x.scale[0];
  std::vector<std::int64_t> quantised;
  std::vector<double> shares;
  const auto add = [&](std::int64_t q, std::int64_t width) {
    if (q < 0 && function.lowest >= 0) return;
    const auto elements = static_cast<double>(width);
    const double unseen = std::abs(q) <= next_to_zero ? share_unseen : share_elsewhere;
    const double share = function.counted
                             ? function.counted->share((static_cast<double>(q) - elements / 2) * step, elements * step)
                             : unseen * elements;
    if (!(share > 0)) return;
    quantised.push_back(q);
    shares.push_back(share);
  };
  const std::int64_t end = function.near_alone ? next_to_zero : last;
  for (std::int64_t q = -end + every / 2; q < -next_to_zero; q += every) add(q, every);
  for (std::int64_t q = -next_to_zero; q <= next_to_zero; ++q) add(q, 1);
  for (std::int64_t q = next_to_zero + 1 + every / 2; q <= end; q += every) add(q, every);
  return {function.graph, function.graph.nodes[function.node], x, function.y, quantised, shares};
}

// Is the table so far from the function, and is that more than rounding?
bool loses(const Function& function, const FormTrial& trial, double table) {
  const Tolerable& tolerable = function.tolerable;
  return table > tolerable.of_power * trial.power() + tolerable.of_width * trial.width() * trial.width() &&
         table > gain * trial.least_error();
}

// Of the forms that come near to the best of them, the one with the fewest operators.
std::optional<FunctionForm> form_of(const Function& function) {
  constexpr std::int64_t few = 16;
  const FunctionForm table{.node = function.node}, integers{.node = function.node, .integers = true};
  const FormTrial first = trial_of(function, few);
  if (!first.ok()) return std::nullopt;
  const FormTrial::Run plain = first.run(table);
  if (plain.gathers) {
    const bool as_good =
        !function.near_alone && first.run(integers).error <= gain * std::max(plain.error, first.least_error());
    return as_good ? std::optional(integers) : std::nullopt;
  }
  if (!loses(function, first, plain.error)) return std::nullopt;
  std::vector<FormTrial> trials;
  for (const double larger : {1.0, 1.005, 1.013}) trials.push_back(trial_of(function, 1, larger));
  if (!std::ranges::all_of(trials, [](const FormTrial& trial) { return trial.ok(); })) return std::nullopt;
  const auto run = [&](const FunctionForm& form) {
    FormTrial::Run worst{.error = 0};
    for (const FormTrial& trial : trials) {
      const FormTrial::Run found = trial.run(form);
      worst = {std::max(worst.error, found.error), found.operators, found.gathers};
    }
    return worst;
  };
  std::vector<std::pair<FunctionForm, FormTrial::Run>> forms;
  const auto attempt = [&](const FunctionForm& form) { forms.emplace_back(form, run(form)); };
  if (!function.near_alone) attempt(integers);
  for (int finer = function.near_alone ? finest : 2; finer <= finest; finer *= 2)
    attempt({.node = function.node, .finer = finer});
  const double worth = run(table).error / gain;
  double best = worth;
  for (const auto& [form, found] : forms) best = std::min(best, found.error);
  const double limit = std::min(worth, std::max(2 * best, trials.front().least_error() / gain));
  std::optional<FunctionForm> chosen;
  FormTrial::Run of_chosen;
  for (const auto& [form, found] : forms)
    if (found.error <= limit &&
        (!chosen || std::pair(found.operators, found.error) < std::pair(of_chosen.operators, of_chosen.error))) {
      chosen = form;
      of_chosen = found;
    }
  return chosen;
}

}  // namespace

void set_form(Node& node, const FunctionForm& form) {
  if (form.finer > 0) set_mark(node, mark::finer, form.finer);
  if (form.integers) set_mark(node, mark::integers, true);
}

void set_form_of(const Node& was, Node& node) {
  if (const auto* finer = find_mark(was, mark::finer)) set_mark(node, mark::finer, *finer);
  if (has_mark(was, mark::integers)) set_mark(node, mark::integers, true);
}

std::vector<FunctionForm> function_forms(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                         const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan,
                                         const QuantiseOptions& options) {
  const bool in_16_bits = options.scheme == Scheme::int16x8;
  const bool weights =
      !options.sixteen_bits && std::ranges::any_of(plan.weights, [](const auto& w) { return !w.matrix; });
  const Tolerable& tolerable = !in_16_bits ? inside_8_bits : weights ? beside_weights : beside_16_bits;
  const double room = in_16_bits ? int16_headroom : 1;
  std::vector<FunctionForm> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (plan.floating(n) || !may_have_forms(node)) continue;
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (!plan.quantised[x] || !plan.quantised[y] || !plan.wide[x]) continue;
    const auto range = ranges.find(plan.group[x]), result = ranges.find(plan.group[y]);
    const auto histogram = histograms.find(plan.group[x]);
    if (range == ranges.end() || result == ranges.end() || (histogram == histograms.end() && !histograms.empty()))
      continue;
    const auto scales = [&](const Range& of, bool wide) {
      const double largest = std::max(-of.lowest, of.highest) * room;
      return wide ? symmetric_scales(largest, DType::i16) : affine_scales(of, DType::i8);
    };
    const Scales of_x = scales(range->second, true), of_y = scales(result->second, plan.wide[y] != 0);
    const Function function{.graph = graph,
                            .node = n,
                            .x = of_x,
                            .y = {plan.wide[y] ? DType::i16 : DType::i8, {}, of_y},
                            .lowest = range->second.lowest,
                            .counted = histogram == histograms.end() ? nullptr : &histogram->second,
                            .near_alone = !in_16_bits,
                            .tolerable = tolerable};
    if (const auto form = form_of(function)) found.push_back(*form);
  }
  return found;
}

void mark_function_forms(Graph& graph) {
  const Tolerable& tolerable = has_narrow_weights(graph) ? beside_weights : beside_16_bits;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (!may_have_forms(node)) continue;
    const TensorType &x = graph[node.inputs[0]].type, &y = graph[node.outputs[0]].type;
    if (x.dtype != DType::i16 || !x.quantised() || !y.quantised() || !x.scales->per_tensor() || !y.scales->per_tensor())
      continue;
    const Function function{.graph = graph,
                            .node = n,
                            .x = *x.scales,
                            .y = y,
                            .lowest = reals_of(x).lowest,
                            .counted = nullptr,
                            .near_alone = false,
                            .tolerable = tolerable};
    if (const auto form = form_of(function)) set_form(node, *form);
  }
}

}  // namespace tosaic
