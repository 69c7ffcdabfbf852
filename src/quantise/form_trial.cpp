// SPDX-License-Identifier: Apache-2.0
#include "quantise/form_trial.h"

#include <algorithm>
#include <cmath>

#include "interp/interp.h"
#include "ir/tosa_operators.h"
#include "lower/lower_node.h"
#include "ops/computed.h"
#include "quantise/function_forms.h"

namespace tosaic {

FormTrial::FormTrial(const Graph& graph, const Node& node, const Scales& x, const TensorType& y,
                     std::span<const std::int64_t> quantised, std::span<const double> share) {
  const Shape shape{static_cast<std::int64_t>(quantised.size())};
  if (quantised.empty()) return;
  Node call = node;
  for (ValueId& v : call.inputs) {
    if (v == no_value) continue;
    const Value& given = graph[v];
    const bool first = &v == &call.inputs.front();
    if (!first && (!given.is_constant() || given.type.shape.elements() != 1)) return;
    v = first ? alone_.add_value("x", {DType::i16, shape, x}) : alone_.add_value("other", given.type, given.constant);
  }
  call.outputs = {alone_.add_value("y", TensorType{y.dtype, shape, y.scales})};
  alone_.nodes.push_back(std::move(call));
  operand_ = {{DType::i16, shape, x}, constant_bytes(DType::i16, std::vector(quantised.begin(), quantised.end()))};

  const tosa::Bounds limits = reals_of({y.dtype, shape, y.scales});
  lowest_ = limits.lowest, highest_ = limits.highest;
  // The function at each of them, and a quarter step beside: what rounding moves the operand by in the mean.
  const double step = x.scale[0];
  std::vector<double> at;
  for (const std::int64_t q : quantised)
    for (const double beside : {0.0, -0.25, 0.25}) at.push_back((static_cast<double>(q) + beside) * step);
  const auto trial = try_in_shape(graph, node, Shape{static_cast<std::int64_t>(at.size())});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return;
  const auto values = computed_at(*trial, {at});
  if (!values.ok() || values->size() != at.size()) return;
  double all = 0;
  for (std::size_t i = 0; i < quantised.size(); ++i) {
    const auto held = [&](std::size_t k) { return std::clamp((*values)[3 * i + k], lowest_, highest_); };
    const double f = held(0), below = held(1), above = held(2);
    const bool counts = !std::isnan(f) && !std::isnan(below) && !std::isnan(above);
    wanted_.push_back(counts ? f : 0);
    weights_.push_back(counts ? share[i] : 0);
    if (!counts) continue;
    power_ += share[i] * f * f;
    least_error_ += share[i] * (above - below) * (above - below) / 3;
    all += share[i];
  }
  if (!(all > 0)) {
    weights_.clear();
    return;
  }
  const double own = y.scales->scale[0];
  for (double& weight : weights_) weight /= all;
  power_ /= all;
  least_error_ = least_error_ / all + own * own / 12;
}

FormTrial::Run FormTrial::run(const FunctionForm& form) const {
  Node call = alone_.nodes.front();
  set_form(call, form);
  const auto lowered = try_node(alone_, call, {.lowering = lower_node});
  if (!lowered.ok()) return {};
  const auto results = interp::run(lowered->graph, {operand_});
  if (!results.ok() || results->size() != 1) return {};
  const Tensor& y = results->front();
  const Scales& scales = *alone_[alone_.nodes.front().outputs[0]].type.scales;
  double error = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const auto q = element_as_integer(y.type.dtype, y.data.data(), i) - scales.zero_point[0];
    const double off = scales.scale[0] * static_cast<double>(q) - wanted_[i];
    error += weights_[i] * off * off;
  }
  const bool gathers =
      std::ranges::any_of(lowered->graph.nodes, [](const Node& n) { return n.op == tosa::op::gather; });
  return {error, lowered->graph.nodes.size(), gathers};
}

}  // namespace tosaic
